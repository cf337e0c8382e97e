package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The ways of a row, a slot and an order stay as short as they are drawn, and every name in them
// is declared in the file beside it: someone who does not know the code follows them.
func TestTheWaysThroughTheCodeAreThoseThatAreDrawn(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for title, most := range map[string]int{"## A row's way\n": 12, "## A slot's way\n": 6, "## An order's way\n": 8} {
		_, way, ok := strings.Cut(string(page), title)
		if !ok {
			t.Fatalf("no section %q", title)
		}
		way, _, _ = strings.Cut(way, "\n## ")
		steps := regexp.MustCompile(`(?m)^\| \d+ \| .*$`).FindAllString(way, -1)
		if len(steps) == 0 || len(steps) > most {
			t.Errorf("%s: %d files, want at most %d", strings.TrimSpace(title), len(steps), most)
		}
		for _, step := range steps {
			declared := map[string]bool{}
			for _, link := range regexp.MustCompile(`\]\(([^)]+\.go)\)`).FindAllStringSubmatch(step, -1) {
				declarations(t, filepath.Join("../../docs", link[1]), declared)
			}
			names := regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(step, -1)
			if len(names) == 0 {
				t.Errorf("no name to look for in the file of: %s", step)
			}
			for _, name := range names {
				if !declared[name[1]] {
					t.Errorf("%s is declared in none of the files of: %s", name[1], step)
				}
			}
		}
	}
}

// declarations adds the names of functions, methods and types that a file declares.
func declarations(t *testing.T, path string, names map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names[s.Name.Name] = true
				}
			}
		}
	}
}
