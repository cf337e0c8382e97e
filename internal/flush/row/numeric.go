package row

import (
	"fmt"
	"strconv"
	"strings"
)

// maxShift is the maximum exponent. Without a limit the twelve characters "1e1000000000" would become a gigabyte of digits.
const maxShift = 1000

// decimalText is a decimal number, split into its parts before any arithmetic.
type decimalText struct {
	source   string
	negative bool
	digits   string // the digits before the point, without leading zeros
	fraction string // the digits after the point, as written
	dot      bool
	shifted  bool // the number has an exponent
	exponent int64
}

// scanDecimal parses "-12.50e3". It refuses infinity, NaN, hexadecimal and digit separators, since databases treat them differently.
func scanDecimal(s string) (decimalText, bool) {
	d := decimalText{source: s}
	rest := s
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		d.negative = rest[0] == '-'
		rest = rest[1:]
	}
	n := countDigits(rest)
	whole := n
	d.digits, rest = strings.TrimLeft(rest[:n], "0"), rest[n:]
	if rest != "" && rest[0] == '.' {
		d.dot = true
		n = countDigits(rest[1:])
		d.fraction, rest = rest[1:1+n], rest[1+n:]
	}
	if whole+len(d.fraction) == 0 {
		return d, false
	}
	if rest == "" {
		return d, true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return d, false
	}
	d.shifted = true
	sign := 0
	if len(rest) > 1 && (rest[1] == '-' || rest[1] == '+') {
		sign = 1
	}
	if n = countDigits(rest[1+sign:]); n == 0 || 1+sign+n != len(rest) {
		return d, false
	}
	// For an exponent of more than 64 bits, ParseInt returns the nearest number, which also exceeds maxShift.
	d.exponent, _ = strconv.ParseInt(rest[1:], 10, 64)
	return d, true
}

func countDigits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}

// whole reports whether the text has neither a point nor an exponent.
func (d decimalText) whole() bool { return !d.dot && !d.shifted }

func (d decimalText) zero() bool { return d.digits == "" && strings.Trim(d.fraction, "0") == "" }

// unshifted moves the point by the exponent, so that no exponent remains. ok is false if that needs too many digits.
func (d decimalText) unshifted() (decimalText, bool) {
	if !d.shifted {
		return d, true
	}
	out := d
	out.source, out.shifted, out.exponent = "", false, 0
	switch n := d.exponent; {
	case d.zero():
		out.fraction = ""
	case n > maxShift || n < -maxShift:
		return d, false
	case n >= 0:
		fraction := d.fraction + strings.Repeat("0", max(0, int(n)-len(d.fraction)))
		out.digits, out.fraction = strings.TrimLeft(d.digits+fraction[:n], "0"), fraction[n:]
	default:
		digits := strings.Repeat("0", max(0, int(-n)-len(d.digits))) + d.digits
		at := len(digits) + int(n)
		out.digits, out.fraction = strings.TrimLeft(digits[:at], "0"), digits[at:]+d.fraction
	}
	return out, true
}

// plain formats an unshifted number in canonical form: no plus, no leading zeros, and a digit before the point.
func (d decimalText) plain() string {
	digits := d.digits
	if digits == "" {
		digits = "0"
	}
	sign := ""
	if d.negative && !d.zero() {
		sign = "-"
	}
	size := len(sign) + len(digits)
	if d.fraction != "" {
		size += 1 + len(d.fraction)
	}
	if size == len(d.source) && d.source[0] != '+' && (sign == "") == (d.source[0] != '-') {
		return d.source // the plain form has the same length as the source, so both are equal
	}
	if d.fraction == "" {
		return sign + digits
	}
	return sign + digits + "." + d.fraction
}

// parseDecimal parses a decimal number. The result has no exponent.
func parseDecimal(s string) (decimalText, error) {
	written, ok := scanDecimal(s)
	if !ok {
		return written, fmt.Errorf("%s is not a decimal number", Quote(s))
	}
	d, ok := written.unshifted()
	if !ok {
		return d, fmt.Errorf("%s has an exponent beyond %d", Quote(s), maxShift)
	}
	return d, nil
}

// PlainDecimal parses a decimal number into its canonical form: digits without an exponent, and without needless zeros at either end.
func PlainDecimal(s string) (string, error) {
	d, err := parseDecimal(s)
	if err != nil {
		return "", err
	}
	d.fraction = strings.TrimRight(d.fraction, "0")
	return d.plain(), nil
}

// numericReader returns a Reader of exact decimal numbers.
func numericReader(c Column) Reader {
	return func(s string) (Value, error) {
		d, err := parseDecimal(s)
		if err != nil {
			return Value{}, err
		}
		if c.Precision > 0 && !d.fits(c.Precision, c.Scale) {
			return Value{}, fmt.Errorf("%s does not fit numeric(%d,%d) exactly", Quote(s), c.Precision, c.Scale)
		}
		return String(KindNumeric, d.plain()), nil
	}
}

// fits reports whether numeric(precision, scale) can store the number exactly. PostgreSQL also allows a negative scale: with the scale -3,
// the last three digits before the point must be zero.
func (d decimalText) fits(precision, scale int) bool {
	if d.zero() {
		return true
	}
	fraction := strings.TrimRight(d.fraction, "0")
	if len(fraction) > max(scale, 0) || len(d.digits) > max(precision-scale, 0) {
		return false
	}
	if scale < 0 {
		return len(d.digits)-len(strings.TrimRight(d.digits, "0")) >= -scale
	}
	// numeric(2,4) can store 0.0012 but not 0.12, because its digits begin at the third place after the point.
	leading := len(fraction) - len(strings.TrimLeft(fraction, "0"))
	return d.digits != "" || leading >= scale-precision
}

// fitsShifted works like fits, for a number that may have an exponent.
func fitsShifted(d decimalText, c Column) bool {
	plain, ok := d.unshifted()
	return ok && plain.fits(c.Precision, c.Scale)
}

// compareDecimal compares two plain numbers.
func compareDecimal(a, b string) int {
	negativeA, negativeB := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	switch {
	case negativeA && negativeB:
		return compareMagnitude(b[1:], a[1:])
	case negativeA:
		return -1
	case negativeB:
		return 1
	}
	return compareMagnitude(a, b)
}

func compareMagnitude(a, b string) int {
	wholeA, fractionA, _ := strings.Cut(a, ".")
	wholeB, fractionB, _ := strings.Cut(b, ".")
	if len(wholeA) != len(wholeB) {
		return len(wholeA) - len(wholeB)
	}
	if wholeA != wholeB {
		return strings.Compare(wholeA, wholeB)
	}
	return strings.Compare(strings.TrimRight(fractionA, "0"), strings.TrimRight(fractionB, "0"))
}
