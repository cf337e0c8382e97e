package row

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// names are similar to the names of the members.
var names = rapid.OneOf(
	rapid.SampledFrom([]string{"key", "$key", "key_base64", "$key_base64", "a", "a_base64", "a_base64_base64", "a_cut", "$gone", "$cut",
		"$unread", "$value", ""}),
	rapid.String(),
)

var texts = rapid.OneOf(
	rapid.String(),
	rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	rapid.SampledFrom([]string{"", "\x00", "null", "a\xff", "\"", "\u2028<&>", "\ufffd", "😀"}),
)

func TestEveryRecordIsReadBackByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs := rapid.SliceOfNDistinct(names, 0, 6, rapid.ID).Draw(t, "inputs")
		r := Record{Key: texts.Draw(t, "key"), Gone: rapid.Bool().Draw(t, "gone")}
		for range inputs {
			raw := Raw{OK: rapid.Bool().Draw(t, "ok")}
			if raw.OK {
				raw.Text = texts.Draw(t, "text")
			}
			r.Inputs = append(r.Inputs, raw)
		}
		text := RecordJSON(inputs, r)
		got, err := ParseRecordJSON(inputs, text)
		if err != nil || !cmp.Equal(got, r) {
			t.Fatalf("%s\ngot %+v, %v\nwant %+v", text, got, err, r)
		}
	})
}

// The mapping may have changed since the letter was written. Inputs that it still needs are found by their names.
func TestRecordIsReadBackForOtherInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := names.Filter(func(s string) bool { return s != "key" && s != "$key" })
		inputs := rapid.SliceOfNDistinct(field, 1, 6, rapid.ID).Draw(t, "inputs")
		r := Record{Key: texts.Draw(t, "key")}
		had := map[string]Raw{}
		for _, name := range inputs {
			raw := Raw{OK: rapid.Bool().Draw(t, "ok")}
			if raw.OK {
				raw.Text = texts.Draw(t, "text")
			}
			had[name] = raw
			r.Inputs = append(r.Inputs, raw)
		}
		wanted := rapid.SliceOfNDistinct(rapid.OneOf(field, rapid.SampledFrom(inputs)), 0, 6, rapid.ID).Draw(t, "wanted")
		text := RecordJSON(inputs, r)
		got, err := ParseRecordJSON(wanted, text)
		lacks := false
		for i, name := range wanted {
			raw, ok := had[name]
			lacks = lacks || !ok
			if got.Inputs[i] != raw {
				t.Fatalf("%s: input %q is %+v, want %+v", text, name, got.Inputs[i], raw)
			}
		}
		if lacks != errors.Is(err, ErrNoInput) || got.Key != r.Key {
			t.Fatalf("%s for %q: %+v, %v", text, wanted, got, err)
		}
	})
}

func TestRecordThatIsNotWholeIsNotReadBack(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{`{"key":"7","note_cut":"aaa","$cut":["note"]}`, ErrCutRecord},
		{`{"key":"7","note_base64_cut":"aaa","$cut":["note_base64"]}`, ErrCutRecord},
		{`{"key_cut":"7","note":"a","$cut":["key"]}`, ErrCutRecord},
		{`{"key":"7","note":null,"$unread":true}`, ErrUnreadRecord},
		{`{"key":"7","other":"a"}`, ErrNoInput},
		{`{"key":"7","note_cut":"a"}`, ErrNoInput},
	} {
		if _, err := ParseRecordJSON([]string{"note"}, c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.text, err, c.want)
		}
	}
}

func TestRecordIsReadBackOfACutOneWhereItIsWhole(t *testing.T) {
	got, err := ParseRecordJSON([]string{"a", "b_cut"}, `{"key":"7","a":"1","b_cut":"2","note_cut":"aaa","$cut":["note"]}`)
	if err != nil || !slices.Equal(got.Inputs, []Raw{{"1", true}, {"2", true}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMendedInputsStandForThoseOfTheRecord(t *testing.T) {
	for _, text := range []string{
		`{"key":"7","a":"1","b":"2"}`, `{"key":"7","a":"1"}`, `{"key":"7","a":"1","b_cut":"2","$cut":["b"]}`,
	} {
		got, err := RepairRecordJSON([]string{"a", "b"}, text, map[string]Raw{"b": {"\x00new", true}})
		if err != nil || !slices.Equal(got.Inputs, []Raw{{"1", true}, {"\x00new", true}}) || got.Key != "7" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	// If the source could not read a record, the repair must supply all inputs.
	mend := map[string]Raw{"a": {"1", true}}
	const unread = `{"key":"7","a":null,"b":null,"$unread":true}`
	if _, err := RepairRecordJSON([]string{"a", "b"}, unread, mend); !errors.Is(err, ErrUnreadRecord) {
		t.Errorf("half of it: %v", err)
	}
	mend["b"] = Raw{}
	if got, err := RepairRecordJSON([]string{"a", "b"}, unread, mend); err != nil || !slices.Equal(got.Inputs, []Raw{{"1", true}, {}}) {
		t.Errorf("all of it: %+v, %v", got, err)
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `x`, `[]`, `null`, `{`, `{}`, `{"key":"7"`, `{"key":"7"} {}`, `{"key":7}`, `{"key":null}`, `{"id":"7"}`,
		`{"key":"7","a":1}`, `{"key":"7","a":{}}`, `{"key":"7","$gone":false}`, `{"key":"7","a_base64":"%"}`,
	} {
		if got, err := ParseRecordJSON([]string{"a"}, text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func FuzzRecordsAreReadBack(f *testing.F) {
	f.Add(`{"key":"7","a":"1"}`, "a", "k", "\xff", true)
	f.Add(`{"key":"7","a_cut":"1","$cut":["a"]}`, "a_base64", "\x00", "", false)
	f.Fuzz(func(t *testing.T, text, name, key, value string, ok bool) {
		_, _ = ParseRecordJSON([]string{name}, text) // must not panic for any text
		if !ok {
			value = ""
		}
		inputs := []string{strings.ToValidUTF8(name, "")}
		want := Record{Key: key, Inputs: []Raw{{value, ok}}}
		got, err := ParseRecordJSON(inputs, RecordJSON(inputs, want))
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestACutRecordKeepsWhatIsShort(t *testing.T) {
	long := strings.Repeat("ü", 50)
	inputs := []string{"a", "key", "b", "c"}
	r := Record{Key: "7", Inputs: []Raw{{"1", true}, {long, true}, {}, {"\xff" + long, true}}, Gone: true}
	text := CutRecordJSON(RecordJSON(inputs, r), 33)
	if want := `{"$key":"7","a":"1","key_cut":"` + long[:32] +
		`","b":null,"c_base64_cut":"/8O8w7zDvMO8w7zDvMO8w7zDvMO8w7zDv","$gone":true,"$cut":["key","c_base64"]}`; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if got, err := ParseRecordJSON([]string{"a", "b"}, text); err != nil || !got.Gone || !slices.Equal(got.Inputs, []Raw{{"1", true}, {}}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{"key", "c"} {
		if _, err := ParseRecordJSON([]string{name}, text); !errors.Is(err, ErrCutRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, whole := range []string{`{"key":"7","a":"1"}`, `no record at all, and a long one`} {
		if got := CutRecordJSON(whole, 8); got != whole {
			t.Errorf("%s became %s", whole, got)
		}
	}
}
