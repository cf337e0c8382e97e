package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// writeYAML writes value as YAML, with the names, the order and the values that its JSON
// has. A document begins with ---, so that several can follow each other.
func writeYAML(w io.Writer, value any) error {
	asJSON, err := json.Marshal(value)
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(asJSON))
	in.UseNumber()
	ordered, err := inOrder(in)
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	tree, err := yaml.ValueToNode(ordered, yaml.IndentSequence(true),
		yaml.CustomMarshaler(func(s string) ([]byte, error) { return []byte(scalar(s)), nil }),
		yaml.CustomMarshaler(func(n json.Number) ([]byte, error) { return []byte(n), nil }))
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	ast.Walk(quotedNames{}, tree)
	_, err = io.WriteString(w, "---\n"+tree.String()+"\n")
	return err
}

// inOrder reads a value of JSON. The names of an object keep their order, also one that is there twice, and numbers
// all their digits, as a record of somebody else's may have them.
func inOrder(in *json.Decoder) (any, error) {
	token, err := in.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	list, object := []any{}, yaml.MapSlice{}
	for in.More() {
		var name any
		if delim == '{' {
			if name, err = in.Token(); err != nil {
				return nil, err
			}
		}
		value, err := inOrder(in)
		if err != nil {
			return nil, err
		}
		list, object = append(list, value), append(object, yaml.MapItem{Key: name, Value: value})
	}
	if _, err := in.Token(); err != nil || delim == '[' {
		return list, err
	}
	return object, nil
}

// quotedNames writes the names of members as [scalar] has them: the encoder calls no marshaler for names.
type quotedNames struct{}

// Visit makes it an ast.Visitor.
func (q quotedNames) Visit(n ast.Node) ast.Visitor {
	if member, ok := n.(*ast.MappingValueNode); ok {
		if name, ok := member.Key.(*ast.StringNode); ok && !strings.HasPrefix(name.Value, `"`) {
			name.Value = scalar(name.Value)
		}
	}
	return q
}

// bare is a text that needs no quotes: it begins with a letter and is no sentence.
var bare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// scalar leaves bare only texts that no version of YAML takes for something else. The library
// knows version 1.2 alone, and loses the text behind a tab.
func scalar(text string) string {
	words := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
	if bare.MatchString(text) && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
