package doctor

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/internal/finding"
)

var update = flag.Bool("update", false, "write the tables of docs/doctor.md anew")

const page = "../../docs/doctor.md"

// marked matches the table with that name in the page: its lines up to an empty line.
func marked(name string) *regexp.Regexp {
	return regexp.MustCompile(`(<!-- findings: ` + name + ` -->\n\n)(?:\|.*\n)*`)
}

// The tables of docs/doctor.md are generated from internal/finding. The prose between the tables is written by hand.
//
//	go test ./internal/doctor -run Reference -update
//
// writes the tables again.
func TestReferenceIsUpToDate(t *testing.T) {
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(have)
	for _, table := range finding.Tables() {
		at := marked(table.Name)
		if n := len(at.FindAllString(want, -1)); n != 1 {
			t.Fatalf("%s has %d places for the findings %q", page, n, table.Name)
		}
		want = at.ReplaceAllStringFunc(want, func(is string) string { return at.FindStringSubmatch(is)[1] + rows(table) })
	}
	if n := strings.Count(want, "<!-- findings:"); n != len(finding.Tables()) {
		t.Errorf("%s has %d tables of findings, and internal/finding %d", page, n, len(finding.Tables()))
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(have) != want {
		t.Errorf("%s is not what internal/finding says: go test ./internal/doctor -run Reference -update", page)
	}
}

func rows(table *finding.Table) string {
	var b strings.Builder
	b.WriteString("| finding | severity | what can be lost |\n|---|---|---|\n")
	for _, k := range table.Kinds {
		fmt.Fprintf(&b, "| %s | %s%s |", k.Words, k.Severity, k.When)
		if k.Lost != "" {
			b.WriteString(" " + k.Lost)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// A finding is made from its kind, and begins with the words of the kind's row, so that an operator who looks the finding up finds the
// row.
func TestEveryFindingHasItsRow(t *testing.T) {
	words := kindsByName(t)
	used, told := map[string]bool{}, 0
	for _, pattern := range []string{"redisconn/*.go", "flush/sql/*.go", "flush/sql/*/*.go", "doctor/*.go"} {
		for fset, file := range parsed(t, pattern) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if _, ok := words[n.Sel.Name]; ok && isFinding(n.X) {
						used[n.Sel.Name] = true
					}
				case *ast.CompositeLit:
					if name := typeName(n.Type); strings.TrimPrefix(name, "finding.") == "Finding" && len(n.Elts) > 0 {
						t.Errorf("%s: a finding without a kind", fset.Position(n.Pos()))
					}
				case *ast.CallExpr:
					kind, text := kindOf(n)
					if kind == "" {
						return true
					}
					if begins := telling(text); begins != "" {
						told++
						if row := strings.NewReplacer("`", "", "*", "").Replace(words[kind]); !strings.Contains(row, begins) {
							t.Errorf("%s: the row of %s has no %q", fset.Position(n.Pos()), kind, begins)
						}
					}
				}
				return true
			})
		}
	}
	for name := range words {
		if !used[name] {
			t.Errorf("no check makes the finding %s", name)
		}
	}
	if told < 110 {
		t.Errorf("compared only %d findings: this test looks in the wrong place", told)
	}
}

// parsed returns the parsed files that match a pattern below internal, without tests.
func parsed(t *testing.T, pattern string) map[*token.FileSet]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", pattern))
	if err != nil {
		t.Fatal(err)
	}
	all := map[*token.FileSet]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all[fset] = file
	}
	return all
}

// kindsByName returns the words of each kind of internal/finding, by the kind's name in the code.
func kindsByName(t *testing.T) map[string]string {
	t.Helper()
	words := map[string]string{}
	for _, file := range parsed(t, "finding/kinds_*.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if call, ok := spec.Values[0].(*ast.CallExpr); ok {
				words[spec.Names[0].Name] = strings.Join(literals(call.Args[2]), "")
			}
			return true
		})
	}
	rows := 0
	for _, table := range finding.Tables() {
		rows += len(table.Kinds)
	}
	if rows != len(words) {
		t.Fatalf("internal/finding declares %d kinds, and its tables have %d", len(words), rows)
	}
	return words
}

// kindOf returns the kind of the finding that a call makes, and the finding's text: add(finding.X, text, …),
// add(finding.X.As(severity), text, …) or finding.X.Of(subject, text, …). The kind is "" for other calls, and for a kind in a variable.
func kindOf(call *ast.CallExpr) (kind string, text ast.Expr) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 4 {
		return "", nil
	}
	of := f.X
	if strings.EqualFold(f.Sel.Name, "add") {
		of = call.Args[0]
	} else if f.Sel.Name != "Of" {
		return "", nil
	}
	ast.Inspect(of, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isFinding(s.X) && !strings.HasPrefix(s.Sel.Name, "Severity") {
			kind = s.Sel.Name
		}
		return true
	})
	return kind, call.Args[1]
}

func isFinding(x ast.Expr) bool { return typeName(x) == "finding" }

// typeName returns a name, together with the name of its package.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return typeName(x.X) + "." + x.Sel.Name
	}
	return ""
}

// literals returns the texts in an expression.
func literals(x ast.Expr) []string {
	var all []string
	ast.Inspect(x, func(n ast.Node) bool {
		if _, ok := n.(*ast.IndexExpr); ok {
			return false // this is a name, not a text
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value) // the parser has checked the literal
			all = append(all, s)
		}
		return true
	})
	return all
}

var verb = regexp.MustCompile(`%[-+#]?[a-z]`)

// telling returns the beginning of the longest part of a text that contains no inserted value.
func telling(text ast.Expr) string {
	var stretches []string
	for _, s := range literals(text) {
		for _, part := range verb.Split(s, -1) {
			part, _, _ = strings.Cut(part, ":")
			part, _, _ = strings.Cut(strings.TrimLeft(part, " ,"), ",")
			stretches = append(stretches, strings.Trim(part, " (),\""))
		}
	}
	if len(stretches) == 0 {
		return ""
	}
	longest := slices.MaxFunc(stretches, func(a, b string) int { return len(a) - len(b) })
	words := strings.Fields(longest)
	return strings.Join(words[:min(3, len(words))], " ")
}
