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

// writeYAML writes value as YAML, with the names, the order and the values of its JSON. The document begins with "---", so that several
// documents can follow each other.
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

// inOrder decodes a JSON value. It keeps the order of an object's names, also of a name that occurs twice. Numbers keep all their digits,
// because the record of another program may contain long numbers.
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

// quotedNames writes the names of members as [scalar] does, because the encoder calls no marshaler for names.
type quotedNames struct{}

// Visit implements ast.Visitor.
func (q quotedNames) Visit(n ast.Node) ast.Visitor {
	if member, ok := n.(*ast.MappingValueNode); ok {
		if name, ok := member.Key.(*ast.StringNode); ok && !strings.HasPrefix(name.Value, `"`) {
			name.Value = scalar(name.Value)
		}
	}
	return q
}

// bare matches a text that needs no quotes: the text begins with a letter and contains only words.
var bare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// scalar writes a text without quotes only if no version of YAML reads the text as another type. The library alone is not enough, because
// it supports only version 1.2, and loses the text after a tab.
func scalar(text string) string {
	words := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
	if bare.MatchString(text) && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
