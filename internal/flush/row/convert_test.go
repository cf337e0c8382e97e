package row

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// show formats a value with its kind and content, for comparisons.
func show(v Value) string {
	switch v.Kind() {
	case KindNull:
		return "NULL"
	case KindInteger:
		return fmt.Sprint("integer ", v.Int())
	case KindFloat:
		return fmt.Sprint("float ", v.Float())
	case KindBoolean:
		return fmt.Sprint("boolean ", v.Bool())
	case KindTimestamp:
		return "timestamp " + v.Time().Format(time.RFC3339Nano)
	case KindDate:
		return "date " + v.Time().Format(time.DateOnly)
	default:
		return v.Kind().String() + " " + v.Text()
	}
}

// shown reads a text as a column would, and shows the value, or "refused: " and the reason.
func shown(t *testing.T, as Kind, c Column, op Op, format, text string) string {
	t.Helper()
	read, ok := NewReader(as, c, op, format)
	if !ok {
		return "cannot hold"
	}
	v, err := read(text)
	if err != nil {
		if v != (Value{}) {
			t.Errorf("%q was refused, but came with the value %s", text, show(v))
		}
		return "refused: " + err.Error()
	}
	return show(v)
}

// The wanted text is only a prefix, so that a test need not spell out a refusal.
type conversion struct {
	column Column
	text   string
	want   string
}

func check(t *testing.T, cases []conversion) {
	t.Helper()
	for _, c := range cases {
		if got := shown(t, c.column.Kind, c.column, OpSet, "", c.text); !matches(got, c.want) {
			t.Errorf("%s column %+v reads %q as %s, want %s", c.column.Kind, c.column, c.text, got, c.want)
		}
	}
}

func matches(got, want string) bool {
	if strings.HasPrefix(want, "refused") {
		return strings.HasPrefix(got, want)
	}
	return got == want
}

func TestIntegersAreExactOrRefused(t *testing.T) {
	big := Column{Kind: KindInteger}
	small := Column{Kind: KindInteger, Bits: 8}
	usmall := Column{Kind: KindInteger, Bits: 8, Unsigned: true}
	ubig := Column{Kind: KindInteger, Bits: 64, Unsigned: true}
	check(t, []conversion{
		{big, "42", "integer 42"},
		{big, "+42", "integer 42"},
		{big, "-0", "integer 0"},
		{big, "007", "integer 7"},
		{big, "9223372036854775807", "integer 9223372036854775807"},
		{big, "-9223372036854775808", "integer -9223372036854775808"},
		{big, "9223372036854775808", `refused: "9223372036854775808" is outside of -9223372036854775808 to 9223372036854775807`},
		{big, "3.0", `refused: "3.0" is not a whole number in decimal digits`},
		{big, "1e3", "refused"},
		{big, "0x10", "refused"},
		{big, "1_000", "refused"},
		{big, " 1", "refused"},
		{big, "١", "refused"},
		{big, "", "refused"},
		{big, "NaN", "refused"},
		{small, "127", "integer 127"},
		{small, "-128", "integer -128"},
		{small, "128", `refused: "128" is outside of -128 to 127`},
		{Column{Kind: KindInteger, Bits: 24}, "8388607", "integer 8388607"},
		{Column{Kind: KindInteger, Bits: 24}, "8388608", "refused"},
		{usmall, "255", "integer 255"},
		{usmall, "+255", "integer 255"},
		{usmall, "256", `refused: "256" is outside of 0 to 255`},
		{usmall, "-1", `refused: "-1" is outside of 0 to 255`},
		{usmall, "++1", "refused"},
		{ubig, "9223372036854775807", "integer 9223372036854775807"},
		{ubig, "18446744073709551615", "numeric 18446744073709551615"},
		{ubig, "18446744073709551616", "refused"},
	})
}

func TestWhatIsAddedMayExceedTheColumnButNot64Bits(t *testing.T) {
	c := Column{Kind: KindInteger, Bits: 16, Unsigned: true}
	for text, want := range map[string]string{
		"-5":                  "integer -5",
		"70000":               "integer 70000",
		"9223372036854775808": "refused",
	} {
		if got := shown(t, KindInteger, c, OpAdd, "", text); !matches(got, want) {
			t.Errorf("adding %q: %s, want %s", text, got, want)
		}
	}
}

func TestFloatsAreTheNearestOneButNeverAnotherNumber(t *testing.T) {
	f64, f32 := Column{Kind: KindFloat, Bits: 64}, Column{Kind: KindFloat, Bits: 32}
	check(t, []conversion{
		{f64, "0.1", "float 0.1"},
		{f64, "-1.5e3", "float -1500"},
		{f64, "0e-999", "float 0"},
		{f64, "9007199254740992", "float 9.007199254740992e+15"},
		{f64, "9007199254740993", "refused: a 64-bit float cannot hold the whole number"},
		{f64, "+00000009007199254740992", "float 9.007199254740992e+15"},
		{f64, "9007199254740993.5", "float 9.007199254740994e+15"},
		{f64, "100000000000000000000000", "refused"}, // its nearest float is slightly less
		{f64, "1e23", "float 1e+23"},
		{f64, "1e309", "refused"},
		{f64, "1e-400", "refused"},
		{f64, "NaN", "refused"},
		{f64, "inf", "refused"},
		{f64, "-Infinity", "refused"},
		{f64, "0x1p-2", "refused"},
		{f64, "1_0", "refused"},
		{f64, "", "refused"},
		{f32, "16777216", "float 1.6777216e+07"},
		{f32, "16777217", "refused"},
		{f32, "1e39", "refused"},
	})
}

func TestNumericsAreExactOrRefused(t *testing.T) {
	free := Column{Kind: KindNumeric}
	money := Column{Kind: KindNumeric, Precision: 6, Scale: 2}
	check(t, []conversion{
		{free, "1.50", "numeric 1.50"}, // the scale stays as it was written
		{free, "+007.0", "numeric 7.0"},
		{free, "-0.00", "numeric 0.00"},
		{free, "-.5", "numeric -0.5"},
		{free, "+.5", "numeric 0.5"},
		{free, "5.", "numeric 5"},
		{free, "1.25e2", "numeric 125"},
		{free, "1.25e1", "numeric 12.5"},
		{free, "-12.5e-4", "numeric -0.00125"},
		{free, "0e99999999999999999999", "numeric 0"},
		{free, "1e1000000000", "refused"},
		{free, "1e-99999999999999999999", "refused"},
		{free, "1e1000", "numeric 1" + strings.Repeat("0", 1000)},
		{free, ".", "refused"},
		{free, "-", "refused"},
		{free, "1e", "refused"},
		{free, "1e+", "refused"},
		{free, "1.2.3", "refused"},
		{free, "NaN", "refused"},
		{free, "Infinity", "refused"},
		{money, "9999.99", "numeric 9999.99"},
		{money, "9999.990", "numeric 9999.990"},
		{money, "9999.999", `refused: "9999.999" does not fit numeric(6,2) exactly`},
		{money, "10000", "refused"},
		{money, "0000010.5", "numeric 10.5"},
		{money, "1e4", "refused"},
		{Column{Kind: KindNumeric, Precision: 2, Scale: 4}, "0.0012", "numeric 0.0012"},
		{Column{Kind: KindNumeric, Precision: 2, Scale: 4}, "0.0123", "refused"},
		{Column{Kind: KindNumeric, Precision: 2, Scale: -2}, "9900", "numeric 9900"},
		{Column{Kind: KindNumeric, Precision: 2, Scale: -2}, "9950", "refused"},
		{Column{Kind: KindNumeric, Precision: 2, Scale: -2}, "10000", "refused"},
	})
}

func TestTextsAreCheckedNotCut(t *testing.T) {
	check(t, []conversion{
		{Column{Kind: KindText}, "", "text "},
		{Column{Kind: KindText}, "Grüße\n", "text Grüße\n"},
		{Column{Kind: KindText}, "a\x00b", "refused: \"a\\x00b\" has a NUL byte"},
		{Column{Kind: KindText}, "\xff", "refused: \"\\xff\" is not valid UTF-8"},
		{Column{Kind: KindText, MaxChars: 5}, "Grüße", "text Grüße"},
		{Column{Kind: KindText, MaxChars: 5}, "Grüße!", "refused"},
		{Column{Kind: KindText, MaxChars: 3}, "abc ", "refused"},
		{Column{Kind: KindText, MaxBytes: 6}, "Grüße", "refused"},
		{Column{Kind: KindOther, MaxChars: 1}, "10.0.0.1", "other 10.0.0.1"},
		{Column{Kind: KindOther}, "\xff", "refused"},
		{Column{Kind: KindBytes}, "\x00\xff", "bytes \x00\xff"},
		{Column{Kind: KindBytes, MaxBytes: 1}, "ab", "refused"},
	})
}

func TestBooleansJSONAndUUIDs(t *testing.T) {
	boolean, js, uuid := Column{Kind: KindBoolean}, Column{Kind: KindJSON}, Column{Kind: KindUUID}
	check(t, []conversion{
		{boolean, "1", "boolean true"},
		{boolean, "TRUE", "boolean true"},
		{boolean, "Yes", "boolean true"},
		{boolean, "on", "boolean true"},
		{boolean, "f", "boolean false"},
		{boolean, "N", "boolean false"},
		{boolean, "OFF", "boolean false"},
		{boolean, "2", "refused"},
		{boolean, "", "refused"},
		{boolean, strings.Repeat("T", 100), "refused"},
		{js, `{"a":[1,null]}`, `json {"a":[1,null]}`},
		{js, `{"a":}`, "refused"},
		{js, "", "refused"},
		{js, "\"\xff\"", "refused"},
		{uuid, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "uuid 6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{uuid, "6BA7B8109DAD11D180B400C04FD430C8", "uuid 6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{uuid, "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "uuid 6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{uuid, "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8", "uuid 6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{uuid, "6ba7b810-9dad-11d1-80b4-00c04fd430cg", "refused"},
		{uuid, "6ba7b8109-dad-11d1-80b4-00c04fd430c8", "refused"},
		{uuid, "6ba7b810-9dad-11d1-80b4-00c04fd430c", "refused"},
	})
}

func TestTimestampsKeepEveryMicrosecondOrAreRefused(t *testing.T) {
	at := Column{Kind: KindTimestamp}
	seconds := Column{Kind: KindTimestamp, TimeUnit: time.Second}
	for _, c := range []struct {
		column       Column
		format, text string
		want         string
	}{
		{at, "", "2024-02-29T12:00:00Z", "timestamp 2024-02-29T12:00:00Z"},
		{at, "rfc3339", "2024-02-29T12:00:00.123456+02:00", "timestamp 2024-02-29T10:00:00.123456Z"},
		{at, "", "2024-02-29T12:00:00.123456000Z", "timestamp 2024-02-29T12:00:00.123456Z"},
		{at, "", "2024-02-29T12:00:00.1234567Z", "refused"},
		{at, "", "2024-02-29T12:00:00.1234560001Z", "refused"}, // package time drops the tenth digit
		{at, "", "2023-02-29T12:00:00Z", "refused"},
		{at, "", "2024-02-29 12:00:00", "refused"},
		{at, "", "2024-02-29T12:00:60Z", "refused"},
		{at, "", "0000-12-31T23:59:59Z", "refused"},
		{at, "", "0001-01-01T00:00:00+01:00", "refused"}, // still the year 0 in UTC
		{at, "", "9999-12-31T23:59:59.999999Z", "timestamp 9999-12-31T23:59:59.999999Z"},
		{at, "", "1700000000", "refused"},
		{at, "unix", "1700000000", "timestamp 2023-11-14T22:13:20Z"},
		{at, "unix", "1700000000.123456", "timestamp 2023-11-14T22:13:20.123456Z"},
		{at, "unix", "1700000000.1234567", "refused"},
		{at, "unix", "1700000000.12345600000", "timestamp 2023-11-14T22:13:20.123456Z"},
		{at, "unix", "-0.5", "timestamp 1969-12-31T23:59:59.5Z"},
		{at, "unix", "1.7e9", "refused"},
		{at, "unix", "1700000000000", "refused"}, // milliseconds by mistake: the year 55840
		{at, "unix", "99999999999999999999", "refused"},
		{at, "unix", "", "refused"},
		{at, "unix_ms", "1700000000123", "timestamp 2023-11-14T22:13:20.123Z"},
		{at, "unix_ms", "-1.5", "timestamp 1969-12-31T23:59:59.9985Z"},
		{at, "unix_ms", "1700000000123.4567", "refused"},
		{at, "2006-01-02 15:04:05", "2024-02-29 12:00:00.25", "timestamp 2024-02-29T12:00:00.25Z"},
		{at, "02.01.2006 15:04 -0700", "29.02.2024 12:00 +0100", "timestamp 2024-02-29T11:00:00Z"},
		{seconds, "", "2024-02-29T12:00:00Z", "timestamp 2024-02-29T12:00:00Z"},
		{seconds, "", "2024-02-29T12:00:00.5Z", `refused: "2024-02-29T12:00:00.5Z" is finer than 1s`},
	} {
		if got := shown(t, KindTimestamp, c.column, OpSet, c.format, c.text); !matches(got, c.want) {
			t.Errorf("format %q reads %q as %s, want %s", c.format, c.text, got, c.want)
		}
	}
}

func TestDatesHaveNoTimeOfDay(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"", "2024-02-29", "date 2024-02-29"},
		{"rfc3339", "1969-12-31", "date 1969-12-31"},
		{"", "0001-01-01", "date 0001-01-01"},
		{"", "0000-12-31", "refused"},
		{"", "2023-02-29", "refused"},
		{"", "2024-02-29T00:00:00Z", "refused"},
		{"2006-01-02 15:04", "2024-02-29 00:00", "date 2024-02-29"},
		{"2006-01-02 15:04", "2024-02-29 00:01", "refused"},
	} {
		if got := shown(t, KindDate, Column{Kind: KindDate}, OpSet, c.format, c.text); !matches(got, c.want) {
			t.Errorf("format %q reads %q as %s, want %s", c.format, c.text, got, c.want)
		}
	}
}

func TestTypeOverrideSaysHowATextIsRead(t *testing.T) {
	for _, c := range []struct {
		as     Kind
		column Column
		text   string
		want   string
	}{
		{KindBoolean, Column{Kind: KindInteger, Bits: 8}, "yes", "integer 1"},
		{KindBoolean, Column{Kind: KindInteger, Bits: 8}, "5", "refused"},
		{KindInteger, Column{Kind: KindNumeric}, "5", "numeric 5"},
		{KindInteger, Column{Kind: KindNumeric}, "5.5", "refused"},
		{KindInteger, Column{Kind: KindFloat}, "5", "float 5"},
		{KindText, Column{Kind: KindBytes}, "ab", "bytes ab"},
		{KindText, Column{Kind: KindBytes}, "\xff", "refused"},
		{KindJSON, Column{Kind: KindText}, "{}", "text {}"},
		{KindJSON, Column{Kind: KindText}, "{", "refused"},
		{KindUUID, Column{Kind: KindText, MaxChars: 4}, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "refused"},
		{KindInteger, Column{Kind: KindOther}, "5", "integer 5"},
		{KindTimestamp, Column{Kind: KindInteger}, "5", "cannot hold"},
		{KindText, Column{Kind: KindInteger}, "5", "cannot hold"},
		{KindBytes, Column{Kind: KindText}, "5", "cannot hold"},
	} {
		if got := shown(t, c.as, c.column, OpSet, "", c.text); !matches(got, c.want) {
			t.Errorf("type %s on a %s column reads %q as %s, want %s", c.as, c.column.Kind, c.text, got, c.want)
		}
	}
}

func TestMessagesQuoteLongAndBrokenValuesSafely(t *testing.T) {
	_, err := textReader(KindText, Column{})(strings.Repeat("ü", 1000) + "\xff")
	if err == nil || len(err.Error()) > 250 || !strings.Contains(err.Error(), "2001 bytes") || strings.Contains(err.Error(), `\x`) {
		t.Errorf("error is %q", err)
	}
}

func TestFormatsThatCannotTellADayAreRefused(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		format string
		ok     bool
	}{
		{KindTimestamp, "unix", true},
		{KindTimestamp, "2006-01-02T15:04", true},
		{KindTimestamp, "YYYY-MM-DD", false},
		{KindTimestamp, "15:04", false},
		{KindTimestamp, "2006-01", false},
		{KindTimestamp, time.RFC1123, false}, // only a short name of the zone
		{KindTimestamp, time.RFC1123Z, true},
		{KindDate, "unix", false},
		{KindDate, "02.01.2006", true},
	} {
		if err := CheckFormat(c.kind, c.format); (err == nil) != c.ok {
			t.Errorf("%s with format %q: %v", c.kind, c.format, err)
		}
	}
}

// twiceNamed must handle any valid JSON text.
func TestNamesOfMembersAreComparedAsTheyAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", `[]`: "", `"a"`: "", `1`: "", `{"a":{"a":{"a":1}}}`: "", `[{"a":1},{"a":2}]`: "", `{"a":["a","a"],"b":"a"}`: "",
		`{"a":1,"a":2}`: "a", `{"a":[{}],"a":2}`: "a", `[[{"x":{"b":1},"b":0,"x":1}]]`: "x", `{"é":1,"\u00e9":2}`: "é",
		`{"\"":1,"\"":2}`: `"`, `{"":1,"":2}`: "",
	} {
		got, twice := twiceNamed(text)
		if got != want || twice != (want != "" || text == `{"":1,"":2}`) {
			t.Errorf("%s: %q, %v; want %q", text, got, twice, want)
		}
	}
}
