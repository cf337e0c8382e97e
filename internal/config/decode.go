package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder fills a Config from the syntax tree. The library's decoder is not used because it stops at the first error, does not record the
// places of values, and quotes the source in its messages.
type decoder struct {
	file     string
	env      Lookup
	config   *Config
	problems Problems
}

// shorthand is a struct that may also be written as a single text.
type shorthand interface{ fromText(string) }

// fail reports a problem at the place of n itself, such as a key.
func (d *decoder) fail(n ast.Node, path, format string, args ...any) {
	p := Problem{Source: d.file, Path: path, Message: fmt.Sprintf(format, args...)}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	d.problems = append(d.problems, p)
}

// bad reports a problem of a value, at the place of the value's key.
func (d *decoder) bad(n ast.Node, path, format string, args ...any) {
	if path == "" {
		d.fail(n, path, format, args...)
		return
	}
	d.problems = append(d.problems, d.config.Problem(path, fmt.Sprintf(format, args...)))
}

// here records where a value was set, which is the place of its key or of its list item.
func (d *decoder) here(n ast.Node, path string) {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		d.config.places[path] = position{d.file, tk.Position.Line, tk.Position.Column}
	}
}

// decode sets v from n. Its messages never quote n, because n may be a secret in the wrong place.
func (d *decoder) decode(n ast.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		if v.Kind() == reflect.String {
			d.bad(n, path, "a text that begins with &, * or ! must be in quotes; anchors, aliases and tags are not supported")
			return
		}
		d.bad(n, path, "anchors, aliases and tags are not supported; write the value out, or use defaults:")
		return
	case *ast.NullNode:
		if tag.Get("config") == "null" && n.GetToken().Value == "null" {
			v.SetString("null")
		}
		return
	}
	if short, ok := reflect.TypeAssert[shorthand](v.Addr()); ok {
		if s, ok := scalar(n); ok {
			short.fromText(s)
			return
		}
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d.duration(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer: // the whole section is optional
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path, tag)
	case reflect.String:
		d.text(n, v, path, tag)
	case reflect.Int:
		d.integer(n, v, path, tag)
	case reflect.Bool:
		d.boolean(n, v, path)
	case reflect.Slice:
		d.list(n, v, path, tag)
	default:
		d.mapping(n, v, path, tag)
	}
}

// mapping decodes a struct, or a map whose keys are names that the operator has chosen.
func (d *decoder) mapping(n ast.Node, v reflect.Value, path string, tag reflect.StructTag) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.bad(n, path, "write key: value pairs here")
		return
	}
	seen := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		key, value := it.Key(), it.Value()
		name := key.GetToken().Value
		at := strings.TrimPrefix(path+"."+name, ".")
		if _, merge := key.(*ast.MergeKeyNode); merge || key.GetToken().Type == token.MappingKeyType {
			d.fail(key, at, "merge keys and complex keys are not supported; write the value out, or use defaults:")
			continue
		}
		if line, twice := seen[name]; twice {
			d.fail(key, at, "the key is set twice, first in line %d; remove one", line)
			continue
		}
		seen[name] = key.GetToken().Position.Line
		if v.Kind() == reflect.Map {
			d.here(key, at)
			d.entry(value, v, name, at, tag)
			continue
		}
		if field, own, ok := fieldNamed(v, name); ok {
			d.here(key, at)
			d.decode(value, field, at, own)
			continue
		}
		d.unknown(key, v, name, at)
	}
}

func (d *decoder) entry(n ast.Node, m reflect.Value, name, at string, tag reflect.StructTag) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	elem := reflect.New(m.Type().Elem()).Elem()
	d.decode(n, elem, at, tag)
	if column, ok := reflect.TypeAssert[*Column](elem.Addr()); ok {
		column.Place = m.Len() + 1
	}
	m.SetMapIndex(reflect.ValueOf(name), elem)
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string, tag reflect.StructTag) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.bad(n, path, "write a list here, for example [a, b] or lines that begin with a dash")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.here(item, at)
		// The token of a mapping is a colon, but an operator looks for the first key of the mapping.
		if m, ok := item.(ast.MapNode); ok {
			if it := m.MapRange(); it.Next() {
				d.here(it.Key(), at)
			}
		}
		d.decode(item, out.Index(i), at, tag)
	}
	v.Set(out)
}

func (d *decoder) text(n ast.Node, v reflect.Value, path string, tag reflect.StructTag) {
	s, ok := scalar(n)
	if !ok {
		if _, pairs := n.(ast.MapNode); pairs { // the parser reads [host:port] inside of {} as a mapping
			d.bad(n, path, "write one text here; if the text has a colon, put it in quotes")
			return
		}
		d.bad(n, path, "write one text here")
		return
	}
	if tag.Get("config") == "expand" {
		var missing string
		if s, missing = expand(s, d.env); missing != "" {
			d.bad(n, path, "%s", missing)
			return
		}
	}
	v.SetString(s)
}

func (d *decoder) integer(n ast.Node, v reflect.Value, path string, tag reflect.StructTag) {
	s, _ := scalar(n)
	i, err := strconv.Atoi(s)
	if err != nil {
		d.bad(n, path, "write a whole number here")
		return
	}
	// In a Config, zero means that the value was not set.
	if least := map[string]int{"positive": 1, "several": 2}[tag.Get("config")]; i == 0 && least > 0 {
		d.bad(n, path, "0: must be %d or more; leave the key out for the default", least)
		return
	}
	v.SetInt(int64(i))
}

func (d *decoder) boolean(n ast.Node, v reflect.Value, path string) {
	s, _ := scalar(n)
	if s != "true" && s != "false" {
		d.bad(n, path, "write true or false here")
		return
	}
	v.SetBool(s == "true")
}

func (d *decoder) duration(n ast.Node, v reflect.Value, path string) {
	s, ok := scalar(n)
	if !ok {
		d.bad(n, path, "write one duration here, for example 10s")
		return
	}
	dur, err := parseDuration(s)
	if err != nil {
		d.bad(n, path, "%v", err)
		return
	}
	v.SetInt(int64(dur))
}

// parseDuration parses a duration, which may begin with days, such as 7d. It rejects zero, because zero has no meaning for these
// durations, and in a Config it means that the value was not set.
func parseDuration(s string) (time.Duration, error) {
	hours := s
	if days, rest, ok := strings.Cut(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 24); err == nil {
			hours = strconv.FormatUint(24*n, 10) + "h" + rest
		}
	}
	d, err := time.ParseDuration(hours)
	if err != nil {
		return 0, fmt.Errorf("bad duration %q: write a number and a unit, for example 500ms, 10s or 1m30s", s)
	}
	if d <= 0 {
		return 0, fmt.Errorf("bad duration %q: must be more than 0; leave it out for the default", s)
	}
	return d, nil
}

// scalar returns a value in the operator's spelling. For example, 007 stays 007.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func fieldNamed(v reflect.Value, name string) (reflect.Value, reflect.StructTag, bool) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if name != "" && keyOf(f) == name {
			return v.FieldByIndex(f.Index), f.Tag, true
		}
	}
	return reflect.Value{}, "", false
}

// keyOf returns a field's name in YAML. It returns "" if the field is not part of the configuration.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(name, "-")
}

// variable matches ${NAME}, and also $${NAME}, which stands for the text ${NAME}.
var variable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} with the value of the environment variable. It replaces $${NAME} with ${NAME}.
func expand(s string, env Lookup) (out, problem string) {
	out = variable.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		name := m[2 : len(m)-1]
		if env != nil {
			if value, ok := env(name); ok {
				return value
			}
		}
		problem = fmt.Sprintf("environment variable %s is not set", name)
		if name == "CREDENTIALS_DIRECTORY" {
			problem += "; systemd sets it for a unit that has LoadCredential=, elsewhere set it yourself"
		}
		return m
	})
	return out, problem
}
