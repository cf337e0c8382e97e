package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// writeYAML writes value as YAML, with the names, the order and the values that its JSON
// has. A document begins with ---, so that several can follow each other.
func writeYAML(w io.Writer, value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	y := yamlWriter{in: json.NewDecoder(&text)}
	y.in.UseNumber()
	y.out.WriteString("---")
	if err := y.value(0, false); err != nil {
		return err
	}
	y.out.WriteString("\n")
	_, err := w.Write(y.out.Bytes())
	return err
}

// yamlWriter writes the tokens of a JSON text as YAML that every reader takes alike: of
// texts it leaves bare only those that no version of YAML takes for something else.
type yamlWriter struct {
	in  *json.Decoder
	out bytes.Buffer
}

// value writes the next value. inList: it stands right behind the dash of a list.
func (y *yamlWriter) value(depth int, inList bool) error {
	token, err := y.in.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		y.out.WriteString(" " + scalar(token))
		return nil
	}
	if !y.in.More() {
		y.out.WriteString(map[json.Delim]string{'{': " {}", '[': " []"}[delim])
		_, err := y.in.Token()
		return err
	}
	indent := "\n" + strings.Repeat("  ", depth)
	for first := true; y.in.More(); first = false {
		lead := indent
		if first && inList {
			lead = " "
		}
		if delim == '[' {
			y.out.WriteString(lead + "-")
			err = y.value(depth+1, true)
		} else {
			err = y.member(lead, depth)
		}
		if err != nil {
			return err
		}
	}
	_, err = y.in.Token()
	return err
}

func (y *yamlWriter) member(lead string, depth int) error {
	name, err := y.in.Token()
	if err != nil {
		return err
	}
	y.out.WriteString(lead + scalar(name) + ":")
	return y.value(depth+1, false)
}

// bare is a text that needs no quotes: it begins with a letter and is no sentence.
var bare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// scalar is a text, number, boolean or null.
func scalar(token json.Token) string {
	switch v := token.(type) {
	case nil:
		return "null"
	case string:
		words := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
		if bare.MatchString(v) && !slices.Contains(words, strings.ToLower(v)) {
			return v
		}
		return quoted(v)
	}
	return fmt.Sprint(token)
}

// quoted is a text as JSON has it, which YAML takes in double quotes as well, but for the
// control characters that JSON leaves as they are.
func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text can be encoded
	var out strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
