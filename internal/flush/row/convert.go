package row

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Reader converts a raw text into the value of a column, or refuses it. It never rounds, cuts or guesses a value.
type Reader func(text string) (Value, error)

// NewReader returns the Reader that converts texts of one kind to values of column c, which may have another kind. NewReader returns false
// if column c cannot store values of the texts' kind.
func NewReader(as Kind, c Column, op Op, format string) (Reader, bool) {
	switch store := c.Kind; {
	case as == store || store == KindOther:
		return nativeReader(as, c, op, format), true
	case as == KindBoolean && store == KindInteger:
		return booleanAsInteger, true
	case as == KindInteger && (store == KindFloat || store == KindNumeric):
		return both(integerReader(Column{}, op), nativeReader(store, c, op, "")), true
	case as == KindText && store == KindBytes:
		return both(textReader(KindText, Column{}), nativeReader(store, c, op, "")), true
	case store == KindText && as != KindBytes:
		return both(nativeReader(as, Column{}, op, format), textReader(KindText, c)), true
	}
	return nil, false
}

// both reads a text with two readers. Both must accept the text, and the second one gives the value.
func both(check, read Reader) Reader {
	return func(s string) (Value, error) {
		if v, err := check(s); err != nil {
			return v, err
		}
		return read(s)
	}
}

func nativeReader(k Kind, c Column, op Op, format string) Reader {
	switch k {
	case KindInteger:
		return integerReader(c, op)
	case KindFloat:
		return floatReader(c)
	case KindNumeric:
		return numericReader(c)
	case KindBytes:
		return bytesReader(c)
	case KindBoolean:
		return readBoolean
	case KindTimestamp:
		return timestampReader(c, format)
	case KindDate:
		return dateReader(format)
	case KindJSON:
		if c.LastMember {
			return readJSONOnce
		}
		return readJSON
	case KindUUID:
		return readUUID
	case KindOther:
		return otherReader(c)
	default:
		return textReader(KindText, c)
	}
}

// integerReader reads whole numbers in decimal digits. An increment may be any 64-bit number, because only the sum must fit the column, and
// the database checks the sum.
func integerReader(c Column, op Op) Reader {
	bits := c.Bits
	if bits == 0 || op == OpAdd {
		bits = 64
	}
	if c.Unsigned && op != OpAdd {
		return func(s string) (Value, error) { return readUnsigned(s, bits) }
	}
	least, most := int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
	return func(s string) (Value, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return Value{}, notInteger(s, err, least, uint64(most))
		}
		if n < least || n > most {
			return Value{}, notInteger(s, strconv.ErrRange, least, uint64(most))
		}
		return Integer(n), nil
	}
}

func readUnsigned(s string, bits int) (Value, error) {
	most := uint64(math.MaxUint64) >> (64 - bits)
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
	switch {
	case err != nil && readsAsInteger(s):
		return Value{}, notInteger(s, strconv.ErrRange, 0, most)
	case err != nil:
		return Value{}, notInteger(s, err, 0, most)
	case n > most:
		return Value{}, notInteger(s, strconv.ErrRange, 0, most)
	case n > math.MaxInt64:
		return String(KindNumeric, strconv.FormatUint(n, 10)), nil
	}
	return Integer(int64(n)), nil
}

func readsAsInteger(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

func notInteger(s string, err error, least int64, most uint64) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is outside of %d to %d", Quote(s), least, most)
	}
	return fmt.Errorf("%s is not a whole number in decimal digits", Quote(s))
}

// floatReader returns a Reader that accepts a fraction, although the column stores only the nearest float. The Reader refuses numbers that
// would change more than that: infinity, a tiny number that would become zero, and whole numbers that a float cannot represent.
func floatReader(c Column) Reader {
	bits := c.Bits
	if bits != 32 {
		bits = 64
	}
	return func(s string) (Value, error) {
		d, ok := scanDecimal(s)
		if !ok {
			return Value{}, fmt.Errorf("%s is not a decimal number", Quote(s))
		}
		f, err := strconv.ParseFloat(s, bits)
		if err != nil || f == 0 && !d.zero() {
			return Value{}, fmt.Errorf("%s is outside the range of a %d-bit float", Quote(s), bits)
		}
		if c.Precision > 0 && !fitsShifted(d, c) {
			return Value{}, fmt.Errorf("%s does not fit %s exactly", Quote(s), c.DBType)
		}
		if d.whole() && !exactFloat(d, f) {
			return Value{}, fmt.Errorf("a %d-bit float cannot hold the whole number %s exactly", bits, Quote(s))
		}
		return Float(f), nil
	}
}

// exactFloat reports whether f equals the whole number d.
func exactFloat(d decimalText, f float64) bool {
	if math.Abs(f) < 1<<24 {
		return true // a float of 32 bits represents each of these whole numbers
	}
	return strconv.FormatFloat(f, 'f', 0, 64) == d.plain()
}

func booleanAsInteger(s string) (Value, error) {
	v, err := readBoolean(s)
	if err != nil {
		return v, err
	}
	return Integer(int64(v.num)), nil
}

func readBoolean(s string) (Value, error) {
	switch s {
	case "1", "true", "t", "yes", "y", "on":
		return Boolean(true), nil
	case "0", "false", "f", "no", "n", "off":
		return Boolean(false), nil
	}
	if lower := strings.ToLower(s); lower != s && len(s) <= len("false") {
		return readBoolean(lower)
	}
	return Value{}, fmt.Errorf("%s is neither true nor false (true, t, yes, y, on, 1; false, f, no, n, off, 0)", Quote(s))
}

func textReader(k Kind, c Column) Reader {
	return func(s string) (Value, error) {
		switch {
		case strings.IndexByte(s, 0) >= 0:
			return Value{}, fmt.Errorf("%s has a NUL byte, which a text cannot hold", Quote(s))
		case !utf8.ValidString(s):
			return Value{}, fmt.Errorf("%s is not valid UTF-8", Quote(s))
		case c.MaxBytes > 0 && len(s) > c.MaxBytes:
			return Value{}, fmt.Errorf("%s is longer than %d bytes", Quote(s), c.MaxBytes)
		case c.MaxChars > 0 && len(s) > c.MaxChars && utf8.RuneCountInString(s) > c.MaxChars:
			return Value{}, fmt.Errorf("%s is longer than %d characters", Quote(s), c.MaxChars)
		case c.Padded && strings.HasSuffix(s, " "):
			return Value{}, fmt.Errorf("%s has blanks at its end, which a column of fixed length does not keep", Quote(s))
		}
		return String(k, s), nil
	}
}

// otherReader returns a Reader for types whose values only the database can interpret. The Reader returns a text unchanged, and refuses a
// text that the database might change when it stores the text.
func otherReader(c Column) Reader {
	read := textReader(KindOther, Column{MaxBytes: c.MaxBytes})
	if c.Form == "" {
		return read
	}
	why := "not a value that the column can keep unchanged"
	if c.Values != nil {
		why = "not one of the column's values: the column accepts " + c.Takes()
	}
	form := regexp.MustCompile(`^(?:` + c.Form + `)$`)
	return func(s string) (Value, error) {
		if !form.MatchString(s) {
			return Value{}, fmt.Errorf("%s is %s", Quote(s), why)
		}
		return read(s)
	}
}

func bytesReader(c Column) Reader {
	return func(s string) (Value, error) {
		if c.MaxBytes > 0 && len(s) > c.MaxBytes {
			return Value{}, fmt.Errorf("%s is longer than %d bytes", Quote(s), c.MaxBytes)
		}
		if c.Padded && len(s) < c.MaxBytes {
			return Value{}, fmt.Errorf("%s is shorter than %d bytes, and the column would pad it with zero bytes", Quote(s), c.MaxBytes)
		}
		return String(KindBytes, s), nil
	}
}

// readJSON accepts valid JSON in UTF-8. It checks the encoding separately, because databases check it but json.Valid does not.
func readJSON(s string) (Value, error) {
	if !utf8.ValidString(s) || !json.Valid([]byte(s)) {
		return Value{}, fmt.Errorf("%s is not valid JSON", Quote(s))
	}
	return String(KindJSON, s), nil
}

// readJSONOnce works like readJSON. It also refuses a text in which two members of an object have the same name, because the column would
// store only the last of them.
func readJSONOnce(s string) (Value, error) {
	v, err := readJSON(s)
	if name, twice := twiceNamed(s); err == nil && twice {
		return Value{}, fmt.Errorf("%s has the member %s twice, but the column would store only the last one", Quote(s), Quote(name))
	}
	return v, err
}

// twiceNamed returns a name that two members of the same object have. The text must be valid JSON.
func twiceNamed(s string) (name string, twice bool) {
	var names []string // the names of members in the open objects, the innermost object last
	var open []int     // for each open object the index of its first name; -1 for an array
	key := false       // whether a text at this place is the name of a member
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			open, key = append(open, len(names)), true
		case '[':
			open, key = append(open, -1), false
		case '}', ']':
			if last := open[len(open)-1]; last >= 0 {
				names = names[:last]
			}
			open, key = open[:len(open)-1], false
		case ',':
			key = open[len(open)-1] >= 0
		case '"':
			end := i + 1
			for s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			if key {
				name = s[i+1 : end]
				if strings.Contains(name, `\`) {
					_ = json.Unmarshal([]byte(s[i:end+1]), &name) // the text is valid JSON
				}
				if slices.Contains(names[open[len(open)-1]:], name) {
					return name, true
				}
				names, key = append(names, name), false
			}
			i = end
		}
	}
	return "", false
}

// readUUID returns the canonical form of 32 hexadecimal digits. The hyphens, surrounding braces and the prefix urn:uuid: are optional.
func readUUID(s string) (Value, error) {
	t := strings.TrimPrefix(s, "urn:uuid:")
	if len(t) == 38 && t[0] == '{' && t[37] == '}' {
		t = t[1:37]
	}
	var out [36]byte
	hyphens := len(t) == 36
	if !hyphens && len(t) != 32 {
		return Value{}, notUUID(s)
	}
	from := 0
	for i := range out {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			out[i] = '-'
			if hyphens && t[from] != '-' {
				return Value{}, notUUID(s)
			}
			if hyphens {
				from++
			}
			continue
		}
		b := t[from]
		from++
		switch {
		case '0' <= b && b <= '9', 'a' <= b && b <= 'f':
		case 'A' <= b && b <= 'F':
			b += 'a' - 'A'
		default:
			return Value{}, notUUID(s)
		}
		out[i] = b
	}
	if string(out[:]) == t {
		return String(KindUUID, t), nil
	}
	return String(KindUUID, string(out[:])), nil
}

func notUUID(s string) error { return fmt.Errorf("%s is not a UUID", Quote(s)) }

// Quote quotes and shortens a value of any bytes for a message.
func Quote(s string) string {
	const most = 64
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}
