package show

import (
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
	var ordered any
	if err := yaml.UnmarshalWithOptions(asJSON, &ordered, yaml.UseOrderedMap()); err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	tree, err := yaml.ValueToNode(ordered, yaml.IndentSequence(true),
		yaml.CustomMarshaler(func(s string) ([]byte, error) { return []byte(scalar(s)), nil }))
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	ast.Walk(quotedNames{}, tree)
	_, err = io.WriteString(w, "---\n"+tree.String()+"\n")
	return err
}

// quotedNames writes the names of members as [scalar] has them: no marshaler is asked for those.
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
// knows version 1.2 alone, and loses what is behind a tab.
func scalar(text string) string {
	words := []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
	if bare.MatchString(text) && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
