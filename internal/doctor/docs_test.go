package doctor

import (
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
)

// Whoever looks a finding up finds it: the words of each stand in docs/doctor.md.
func TestEveryFindingIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Join(strings.Fields(string(text)), " ")
	phrases := findingPhrases(t)
	if len(phrases) < 80 {
		t.Fatalf("found only %d findings in the code: this test looks in the wrong place", len(phrases))
	}
	for _, p := range phrases {
		if !strings.Contains(docs, p.words) {
			t.Errorf("%s: docs/doctor.md has no %q", p.at, p.words)
		}
	}
}

type phrase struct{ at, words string }

// findingPhrases are a few words of every text that is given to a report's add.
func findingPhrases(t *testing.T) []phrase {
	t.Helper()
	var all []phrase
	for _, pattern := range []string{"redisconn/preflight*.go", "flush/sql/preflight*.go", "flush/sql/*/preflight*.go", "doctor/*.go"} {
		files, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 4 {
					return true
				}
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.EqualFold(f.Sel.Name, "add") {
					if words := telling(call.Args[1]); words != "" {
						all = append(all, phrase{fset.Position(call.Pos()).String(), words})
					}
				}
				return true
			})
		}
	}
	return all
}

var verb = regexp.MustCompile(`%[-+#]?[a-z]`)

// telling is the beginning of the longest stretch of a text that no value is put into.
func telling(text ast.Expr) string {
	var stretches []string
	ast.Inspect(text, func(n ast.Node) bool {
		if _, ok := n.(*ast.IndexExpr); ok {
			return false // a name, not a text
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value) // the parser has checked it
			for _, part := range verb.Split(s, -1) {
				part, _, _ = strings.Cut(part, ":")
				part, _, _ = strings.Cut(strings.TrimLeft(part, " ,"), ",")
				stretches = append(stretches, strings.Trim(part, " (),\""))
			}
		}
		return true
	})
	if len(stretches) == 0 {
		return ""
	}
	longest := slices.MaxFunc(stretches, func(a, b string) int { return len(a) - len(b) })
	words := strings.Fields(longest)
	return strings.Join(words[:min(3, len(words))], " ")
}
