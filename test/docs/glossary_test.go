package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	glossaryNoun = regexp.MustCompile("(?m)^\\| ([a-z][^|]*) \\| (?:`(\\w+)\\.(\\w+)` )?\\|")
	typeOfCode   = regexp.MustCompile(`(?m)^type (\w+)`)
)

// mostNouns of our own are as many as a reader learns.
const mostNouns = 60

// The glossary stays short, and each type that it names is in the code.
func TestTheGlossaryNamesTypesOfTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	types := typesOfCode(t)
	nouns := 0
	for _, m := range glossaryNoun.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "noun" {
			continue
		}
		nouns++
		if name := m[2] + "." + m[3]; m[2] != "" && !types[name] {
			t.Errorf("%q: the code has no type %s", m[1], name)
		}
	}
	if nouns == 0 || nouns > mostNouns {
		t.Errorf("the glossary has %d nouns, want at most %d", nouns, mostNouns)
	}
}

// typesOfCode are the names of types by the folder of their package.
func typesOfCode(t *testing.T) map[string]bool {
	t.Helper()
	types := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range typeOfCode.FindAllStringSubmatch(string(text), -1) {
			types[filepath.Base(filepath.Dir(path))+"."+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}
