package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush/row"
)

func TestObjectsAreReadAsWrittenOrNotAtAll(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ text, want string }{ // "a|b", or a part of the error
		{`{"a":1,"b":"x"}`, `1|x`},
		{" {\t\"b\" : \"x\" ,\r\n\"a\" : 1 } \n", `1|x`},
		{`{}`, `-|-`},
		{`{"a":null,"b":""}`, `-|`},
		{`{"a":true,"b":false}`, `true|false`},
		{`{"a":-0.10e+400,"b":12345678901234567890123}`, `-0.10e+400|12345678901234567890123`},
		{`{"a":{"x": [1,null]},"b":[ ]}`, `{"x": [1,null]}|[ ]`},
		{`{"a":"\"\\\/\b\f\n\r\t\u0041\u0000","b":"\ud83d\ude00"}`, "\"\\/\b\f\n\r\tA\x00|😀"},
		{`{"\u0061":1,"B":2,"aa":3}`, `1|-`},
		{`{"c":{"a":1},"a":2}`, `2|-`},
		{`{"a":` + deep(9000) + `}`, deep(9000) + `|-`},

		{``, "empty"},
		{`  `, "empty"},
		{`null`, "not an object"},
		{`[{"a":1}]`, "not an object"},
		{`"a"`, "not an object"},
		{`{"a":1}{"b":2}`, "follows"},
		{`{"a":1},`, "invalid character"},
		{`{"a":1`, "too early"},
		{`{"a":1,}`, "invalid character"},
		{`{"a":01}`, "invalid character"},
		{`{"a":+1}`, "invalid character"},
		{`{"a":NaN}`, "invalid character"},
		{`{a:1}`, "invalid character"},
		{`{'a':1}`, "invalid character"},
		{"{\"a\":\"\n\"}", "invalid character"},
		{"\ufeff{}", "invalid character"},
		{`{"a":1,"a":1}`, "duplicate"},
		{`{"a":1,"\u0061":1}`, "duplicate"},
		{`{"c":1,"c":1}`, "duplicate"},
		{`{"c":[{"x":1,"x":1}]}`, "duplicate"},
		{"{\"a\":\"\xff\"}", "UTF-8"},
		{"{\"\xff\":1}", "UTF-8"},
		{`{"a":"\ud800"}`, "surrogate"},
		{`{"c":"\udc00\ud800"}`, "surrogate"},
		{`{"\ud800":1}`, "surrogate"},
		{`{"a":` + deep(20_000) + `}`, "depth"},
	} {
		into := []row.Raw{{Text: "old", OK: true}, {Text: "old", OK: true}}
		err := decodeObject([]byte(c.text), []string{"a", "b"}, into)
		got := shown(into)
		if err != nil {
			if got != "-|-" {
				t.Errorf("%.60s: refused, and yet left %q", c.text, got)
			}
			got = err.Error()
			if strings.Contains(got, c.want) {
				continue
			}
		}
		if got != c.want {
			t.Errorf("%.60s: %.100s, want %.60s", c.text, got, c.want)
		}
	}
}

// These texts are the reason why the decoder does not use encoding/json, which accepts each of them and silently changes it. Once
// encoding/json refuses them, the unreleased library can be dropped.
func TestTheStandardLibraryChangesWhatTheDecoderRefuses(t *testing.T) {
	for text, changed := range map[string]string{
		`{"a":"1","a":"2"}`: "2",
		"{\"a\":\"\xff\"}":  "\ufffd",
		`{"a":"\ud800"}`:    "\ufffd",
	} {
		var standard map[string]string
		if err := json.Unmarshal([]byte(text), &standard); err != nil || standard["a"] != changed {
			t.Errorf("encoding/json takes %q for %q, %v; it took it for %q", text, standard, err, changed)
		}
		if err := decodeObject([]byte(text), []string{"a"}, make([]row.Raw, 1)); err == nil {
			t.Errorf("the decoder takes %q", text)
		}
	}
	nested := `{"a":{"x":1,"x":2}}`
	var standard map[string]json.RawMessage
	if err := json.Unmarshal([]byte(nested), &standard); err != nil {
		t.Errorf("encoding/json refuses %s: %v", nested, err)
	}
	if err := decodeObject([]byte(nested), []string{"a"}, make([]row.Raw, 1)); err == nil {
		t.Errorf("the decoder takes %s", nested)
	}
}

// A decoder keeps nothing of the previous object, not even after an error.
func TestDecoderOfManyObjectsReadsEachLikeTheFirst(t *testing.T) {
	d := New([]string{"a", "b", "c"})
	for round := range 3 {
		for _, c := range []struct{ text, want string }{
			{`{"a":1,"b":2,"c":3}`, "1|2|3"},
			{`{"x":"\n","c":3,"y":[],"b":"2","a":1,"z":0}`, "1|2|3"},
			{`{"b":[{`, ""},
			{`{"b":"` + strings.Repeat("x", 5000) + `"}`, "-|" + strings.Repeat("x", 5000) + "|-"},
			{`{"b":2}`, "-|2|-"},
		} {
			into := make([]row.Raw, 3)
			err := d.Decode(c.text, []byte(c.text), into)
			if got := shown(into); err == nil && got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("round %d, %.50s: %.50s, %v", round, c.text, got, err)
			}
		}
	}
}

// If the standard library reads a text differently, the text must become a dead letter.
func FuzzObjectsAreReadAsTheStandardLibraryDoesOrNotAtAll(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":"x"}`, `{"a":"\ud800"}`, `{"b":{"a":[1.5e3,null,true]},"a":"\u00e9é"}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}",
		`{"a":"\/"} x`, ` {"":{},"a":-0}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		into := make([]row.Raw, 2)
		if err := decodeObject([]byte(text), []string{"a", "b"}, into); err != nil {
			return
		}
		if !utf8.ValidString(text) {
			t.Fatalf("%q was read", text)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%q was read, and the standard library says %v", text, err)
		}
		for i, name := range []string{"a", "b"} {
			if diff := cmp.Diff(rawOf(t, all[name]), into[i]); diff != "" {
				t.Fatalf("%q, member %s: %s", text, name, diff)
			}
		}
	})
}

// rawOf returns the expected input for a member.
func rawOf(t *testing.T, value json.RawMessage) row.Raw {
	t.Helper()
	var text string
	switch {
	case value == nil || string(value) == "null":
		return row.Raw{}
	case value[0] != '"':
		return row.Raw{Text: string(value), OK: true}
	}
	if err := json.Unmarshal(value, &text); err != nil {
		t.Fatal(err)
	}
	return row.Raw{Text: text, OK: true}
}

// decodeObject reads one object.
func decodeObject(text []byte, wanted []string, into []row.Raw) error {
	d := New(wanted)
	return d.Decode(string(text), text, into)
}

// shown returns texts as "a|-|c", with "-" for a missing one.
func shown(raws []row.Raw) string {
	var texts []string
	for _, in := range raws {
		if in.OK {
			texts = append(texts, in.Text)
		} else {
			texts = append(texts, "-")
		}
	}
	return strings.Join(texts, "|")
}

// If plain accepts an object, the decoder must read the same values. The texts consist of confusing pieces, and then parts of them are
// changed.
func TestAPlainObjectIsWhatTheDecoderReads(t *testing.T) {
	pieces := []string{"{", "}", "{", "}", ",", ",", ":", ":", `"a"`, `"b"`, `"a":1`, `"b":"x",`, `"c":null`, `"é"`, `"\u0061"`, "\"\xff\"",
		"\"\xc3\"",
		"\"\x00\"", "\"\x7f\"", "[", "]", "1", "-", "0", "12", ".5", "e", "E+2", "true", "false", "null", "nul",
		" ", "\t", "\r\n", "\v", "\u2028", "\""}
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	plain, bad := 0, 0
	for range 200_000 {
		text := "{"
		for range 1 + r.IntN(4) {
			text += pieces[8+r.IntN(2)] + ":" + pieces[10+r.IntN(len(pieces)-10)] + pieces[r.IntN(8)]
		}
		if r.IntN(4) > 0 {
			text = strings.TrimRight(text, ",:{}") + "}"
		}
		if r.IntN(4) == 0 {
			at := r.IntN(len(text))
			text = text[:at] + pieces[r.IntN(len(pieces))] + text[at+r.IntN(2):]
		}
		wanted := []string{"a", "b", "é"}
		got, want := make([]row.Raw, 3), make([]row.Raw, 3)
		d := New(wanted)
		ok := d.plain(text, got)
		*d.text = *bytes.NewBuffer([]byte(text))
		d.json.Reset(d.text)
		err := d.members(text, want)
		if ok && (err != nil || !slices.Equal(got, want)) {
			t.Fatalf("seed %d: %q: plain reads %v, the decoder %v, %v", seed, text, got, want, err)
		}
		if ok {
			plain++
		} else if err != nil {
			bad++
		}
	}
	if plain < 1000 || bad < 1000 {
		t.Errorf("seed %d: %d are plain, %d are bad: what was tested?", seed, plain, bad)
	}
	const spaced = `{ "a" : -0.5e+10 , "b":" é" , "c" : null, "d" :true} `
	for text, want := range map[string]bool{
		"{}": true, " " + spaced: true, `{"a":"\n"}`: false, `{"a":[]}`: false,
		"{" + manyMembers(plainNames) + "}": true, "{" + manyMembers(plainNames+1) + "}": false,
	} {
		d := New(nil)
		if got := d.plain(text, nil); got != want {
			t.Errorf("%q: plain: %v", text, got)
		}
	}
}

func manyMembers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"%d":0`, i))
	}
	return strings.Join(all, ",")
}
