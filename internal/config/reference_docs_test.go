package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// structDoc contains the text of one struct's comments.
type structDoc struct {
	about  string
	fields map[string]fieldDoc
}

type fieldDoc struct{ meaning, def string }

// structDocs reads the comments of this package's structs.
func structDocs(t *testing.T) map[string]structDoc {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]structDoc{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if typ, ok := s.(*ast.TypeSpec); ok {
					if st, ok := typ.Type.(*ast.StructType); ok {
						all[typ.Name.Name] = docOf(set, typ.Name.Name, g.Doc.Text(), st)
					}
				}
			}
		}
	}
	return all
}

// docOf reads the comments of one struct. A field without its own comment has the comment of the field directly above it.
func docOf(set *token.FileSet, name, about string, st *ast.StructType) structDoc {
	keys := yamlNames(st)
	out := structDoc{about: sentence(strings.TrimPrefix(strings.TrimPrefix(about, name+" "), "is "), keys), fields: map[string]fieldDoc{}}
	var last string
	var line int
	for _, f := range st.Fields.List {
		at := set.Position(f.Pos()).Line
		doc := f.Doc.Text()
		if doc == "" && at == line+1 && len(f.Names) == 1 && strings.Contains(last, f.Names[0].Name) {
			doc = last
		}
		last, line = doc, at
		for _, n := range f.Names {
			if doc != "" {
				out.fields[n.Name] = meaningOf(doc, keys)
			}
		}
	}
	return out
}

func yamlNames(st *ast.StructType) map[string]string {
	keys := map[string]string{}
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			if f.Tag != nil {
				tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
				keys[n.Name] = keyOf(reflect.StructField{Tag: tag})
			}
		}
	}
	return keys
}

// meaningOf splits a comment into the meaning and the default.
func meaningOf(doc string, keys map[string]string) fieldDoc {
	text := sentence(doc, keys)
	var d fieldDoc
	if before, def, ok := strings.Cut(text, "Default: "); ok {
		def, after := untilFullStop(def)
		d.def, text = def, join(before, after)
	}
	for _, m := range regexp.MustCompile(`(Either this or|This or) [^.]* is required\.|Required[^.]*\.`).FindAllString(text, -1) {
		text = join(strings.Replace(text, m, "", 1))
		if d.def == "" {
			d.def = strings.TrimSuffix(strings.ToLower(m[:1])+m[1:], ".")
		}
	}
	d.meaning = text
	return d
}

// untilFullStop returns the first sentence of a text. A full stop inside of a name or a number does not end the sentence.
func untilFullStop(s string) (sentence, rest string) {
	if before, after, found := strings.Cut(s, ". "); found {
		return before, after
	}
	return strings.TrimSuffix(s, "."), ""
}

var (
	leading = regexp.MustCompile(`^([A-Za-z]+) (is|are|says|holds) `)
	aValue  = regexp.MustCompile(`^([a-z_]+(,| or | \(| to )|[a-z]+:[a-z])`)
	camel   = regexp.MustCompile(`\b[A-Za-z]+\b`)
)

// sentence turns a comment for programmers into a sentence for operators. It replaces the names of fields with the keys of the file.
func sentence(doc string, keys map[string]string) string {
	text := strings.Join(strings.Fields(strings.ReplaceAll(doc, "\n", " ")), " ")
	if i := strings.Index(text, " Load and Overlay "); i >= 0 {
		text = text[:i]
	}
	if m := leading.FindStringSubmatch(text); m != nil {
		if _, ok := keys[m[1]]; ok {
			text = strings.TrimPrefix(text, m[1]+" ")
			if m[2] == "is" || m[2] == "are" {
				text = strings.TrimPrefix(text, m[2]+" ")
			}
		}
	}
	first := true
	text = camel.ReplaceAllStringFunc(text, func(word string) string {
		key, ok := keys[word]
		isFirst := first
		first = false
		if !ok || key == "" || !isFirst && word == strings.ToUpper(word[:1])+word[1:] && plain(word) {
			return word
		}
		return "`" + key + "`"
	})
	if strings.HasPrefix(text, "`") || aValue.MatchString(text) {
		return text
	}
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// plain reports whether the name of a field is also an English word. Such a name is not replaced inside of a sentence.
func plain(word string) bool {
	return slices.Contains(strings.Fields("From To On Key Start Value Type URL Redis Name Jobs Node TLS ID"), word)
}
