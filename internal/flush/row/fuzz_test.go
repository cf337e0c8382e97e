package row

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// fuzz feeds texts to a reader. If the reader accepts a text, the value must mean the same as the text.
func fuzz(f *testing.F, read Reader, same func(text string, v Value) bool, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := read(text)
		if err != nil {
			if !utf8.ValidString(err.Error()) || strings.ContainsRune(err.Error(), 0) || len(err.Error()) > 1000 {
				t.Errorf("%q: the error cannot be stored: %q", text, err)
			}
			return
		}
		if !same(text, v) {
			t.Errorf("%q became %s", text, show(v))
		}
	})
}

// rational returns the exact value of a decimal text. It returns nil for any other text, and for a number that is too large to compute.
func rational(text string) *big.Rat {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if n, err := strconv.Atoi(text[i+1:]); err != nil || n > 2000 || n < -2000 {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

func FuzzInteger(f *testing.F) {
	fuzz(f, integerReader(Column{Bits: 32}, OpSet), func(text string, v Value) bool {
		n, ok := new(big.Int).SetString(text, 10)
		return ok && n.IsInt64() && n.Int64() == v.Int() && v.Int() == int64(int32(v.Int()))
	}, "0", "-1", "+2147483647", "2147483648", "007", "3.0")
}

func FuzzUnsigned(f *testing.F) {
	fuzz(f, integerReader(Column{Bits: 64, Unsigned: true}, OpSet), func(text string, v Value) bool {
		n, ok := new(big.Int).SetString(text, 10)
		return ok && n.IsUint64() && n.String() == v.NumberText()
	}, "0", "-0", "18446744073709551615", "9223372036854775808", "-9223372036854775808")
}

func FuzzFloat(f *testing.F) {
	fuzz(f, floatReader(Column{Bits: 64}), func(text string, v Value) bool {
		n, err := strconv.ParseFloat(text, 64)
		return err == nil && n == v.Float() && !math.IsInf(n, 0) && !math.IsNaN(n)
	}, "0.1", "1e308", "-9007199254740993", "nan", "0x1p4", "1_000")
}

func FuzzNumeric(f *testing.F) {
	fuzz(f, numericReader(Column{}), func(text string, v Value) bool {
		got, ok := new(big.Rat).SetString(v.Text())
		if !ok || strings.ContainsAny(v.Text(), "eE+") || len(v.Text()) > len(text)+maxShift+3 {
			return false
		}
		want := rational(text)
		return want == nil && got.Sign() == 0 || want != nil && want.Cmp(got) == 0
	}, "1.50", "-.5e3", "+00", "1e1000", "12.5e-4", "0e999999", "-0.00", "5.", "1e1000000000")
}

func FuzzNumericOfAPrecisionHoldsItsDigits(f *testing.F) {
	f.Add("12.34", 6, 2)
	f.Add("0.0012", 2, 4)
	f.Add("9900", 2, -2)
	f.Fuzz(func(t *testing.T, text string, precision, scale int) {
		if precision < 1 || precision > 60 || scale < -20 || scale > 60 {
			t.Skip()
		}
		v, err := numericReader(Column{Precision: precision, Scale: scale})(text)
		worth := rational(text)
		if worth == nil {
			return
		}
		// The number fits if number·10^scale is a whole number with at most precision digits.
		ten := func(n int) *big.Rat {
			return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
		}
		scaled := new(big.Rat).Set(worth)
		if scale >= 0 {
			scaled.Mul(scaled, ten(scale))
		} else {
			scaled.Quo(scaled, ten(-scale))
		}
		fits := scaled.IsInt() && new(big.Rat).Abs(scaled).Cmp(ten(precision)) < 0
		if _, plain := scanDecimal(text); plain && fits != (err == nil) && !strings.Contains(text, "e") && !strings.Contains(text, "E") {
			t.Errorf("%q in numeric(%d,%d): %v, %v", text, precision, scale, show(v), err)
		}
		if err == nil && !fits {
			t.Errorf("%q was taken into numeric(%d,%d)", text, precision, scale)
		}
	})
}

func FuzzCompareDecimal(f *testing.F) {
	f.Add("1.5", "1.50")
	f.Add("-10", "-9.99")
	f.Fuzz(func(t *testing.T, a, b string) {
		read := numericReader(Column{})
		va, errA := read(a)
		vb, errB := read(b)
		if errA != nil || errB != nil {
			return
		}
		ra, _ := new(big.Rat).SetString(va.Text())
		rb, _ := new(big.Rat).SetString(vb.Text())
		if got, want := compareDecimal(va.Text(), vb.Text()), ra.Cmp(rb); got < 0 != (want < 0) || got > 0 != (want > 0) {
			t.Errorf("%s against %s: %d, want %d", va.Text(), vb.Text(), got, want)
		}
	})
}

func FuzzTimestamp(f *testing.F) {
	fuzz(f, timestampReader(Column{}, ""), func(text string, v Value) bool {
		at, err := time.Parse(time.RFC3339Nano, text)
		return err == nil && at.Equal(v.Time())
	}, "2024-02-29T12:00:00.123456+02:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999999Z", "2024-02-29T1:00:00,5Z")
}

func FuzzUnixTimestamp(f *testing.F) {
	fuzz(f, timestampReader(Column{}, formatUnix), func(text string, v Value) bool {
		want := rational(text)
		return want != nil && want.Cmp(new(big.Rat).SetFrac64(v.Time().UnixMicro(), 1_000_000)) == 0
	}, "0", "-1.5", "1700000000.123456", "253402300799.999999", "+1.")
}

func FuzzUnixMilliTimestamp(f *testing.F) {
	fuzz(f, timestampReader(Column{}, formatUnixMilli), func(text string, v Value) bool {
		want := rational(text)
		return want != nil && want.Cmp(new(big.Rat).SetFrac64(v.Time().UnixMicro(), 1_000)) == 0
	}, "0", "-1.5", "1700000000123.456", "253402300799999.999")
}

func FuzzDate(f *testing.F) {
	fuzz(f, dateReader(""), func(text string, v Value) bool {
		return v.Time().Format(time.DateOnly) == text
	}, "2024-02-29", "0001-01-01", "9999-12-31", "2023-02-29")
}

func FuzzBoolean(f *testing.F) {
	fuzz(f, readBoolean, func(text string, v Value) bool {
		if b, err := strconv.ParseBool(strings.ToLower(text)); err == nil {
			return b == v.Bool()
		}
		return slices.Contains([]string{"yes", "y", "on"}, strings.ToLower(text)) == v.Bool()
	}, "true", "F", "oN", "2")
}

func FuzzUUID(f *testing.F) {
	fuzz(f, readUUID, func(text string, v Value) bool {
		digits := strings.NewReplacer("urn:uuid:", "", "{", "", "}", "", "-", "").Replace(strings.ToLower(text))
		_, err := hex.DecodeString(digits)
		return err == nil && len(v.Text()) == 36 && strings.ReplaceAll(v.Text(), "-", "") == digits
	}, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}", "6ba7b8109dad11d180b400c04fd430c8")
}

func FuzzJSON(f *testing.F) {
	fuzz(f, readJSON, func(text string, v Value) bool {
		return v.Text() == text && json.Valid([]byte(text)) && utf8.ValidString(text)
	}, "{}", "[1,\"\\u0000\"]", "\"\xff\"")
}

func FuzzText(f *testing.F) {
	fuzz(f, textReader(KindText, Column{MaxChars: 5, MaxBytes: 12}), func(text string, v Value) bool {
		return v.Text() == text && utf8.ValidString(text) && utf8.RuneCountInString(text) <= 5 && len(text) <= 12 &&
			!strings.Contains(text, "\x00")
	}, "Grüße", "a\x00", "\xff", "日本語文字")
}

func FuzzRecordJSONLosesNothing(f *testing.F) {
	f.Add("7", "name", "Ann", true)
	f.Add("\xff", "key", "\x00", true)
	f.Add("7", "a_base64", "</script>\u2028", false)
	f.Fuzz(func(t *testing.T, key, name, text string, ok bool) {
		if !utf8.ValidString(name) || strings.HasPrefix(name, "$") || strings.ContainsRune(name, 0) {
			t.Skip() // no column or input has such a name
		}
		inputs := []string{name, "$value"}
		out := RecordJSON(inputs, Record{Key: key, Inputs: []Raw{{Text: text, OK: ok}, {Text: "1", OK: true}}, Gone: true})
		if strings.Contains(out, `\u0000`) || strings.ContainsRune(out, 0) {
			t.Errorf("%s holds a NUL", out)
		}
		members := map[string]any{}
		if err := json.Unmarshal([]byte(out), &members); err != nil || len(members) != 4 {
			t.Fatalf("%s: %v", out, err)
		}
		keyName := "key"
		if name == "key" {
			keyName = "$key"
		}
		if got := recovered(t, members, keyName); got != key {
			t.Errorf("%s: key is %q, want %q", out, got, key)
		}
		if !ok {
			if v, there := members[name]; !there || v != nil {
				t.Errorf("%s: a missing input is not null", out)
			}
		} else if got := recovered(t, members, name); got != text {
			t.Errorf("%s: %q is %q, want %q", out, name, got, text)
		}
	})
}

// recovered reads a member as a person would who wants the record back.
func recovered(t *testing.T, members map[string]any, name string) string {
	t.Helper()
	if coded, ok := members[name+base64Suffix].(string); ok {
		text, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			t.Errorf("%s: %v", coded, err)
		}
		return string(text)
	}
	text, _ := members[name].(string)
	return text
}
