package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const keysPage = root + "/docs/reference/keys-and-tables.md"

// firstCells are the texts in code type of the first cell of every line of tables.
func firstCells(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cell, ok := strings.CutPrefix(line, "|"); ok {
			cell, _, _ = strings.Cut(cell, "|")
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}

// Every name of a key in the code is on the page, and so is every table and column.
func TestPageOfKeysAndTablesIsWhatTheCodeSays(t *testing.T) {
	have := firstCells(t, keysPage)
	code := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	keys := 0
	for _, m := range regexp.MustCompile(`prefix \+ "(:\w+)`).FindAllStringSubmatch(code("internal/redislock/script/keys.go"), -1) {
		want := "{K}" + m[1]
		if m[1] == ":job" {
			want = "{K}:job:NAME"
		}
		if keys++; !have[want] {
			t.Errorf("the page lacks key %s", want)
		}
	}
	stores, _ := filepath.Glob(root + "/internal/flush/source/*.go") // the patterns are constants: no error
	rooms, _ := filepath.Glob(root + "/internal/flush/source/*/*.go")
	for _, path := range append(stores, rooms...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`":baton:(\w+)"`).FindAllStringSubmatch(code(strings.TrimPrefix(path, root)), -1) {
			if keys++; !have["{L}:baton:"+m[1]] {
				t.Errorf("the page lacks key {L}:baton:%s", m[1])
			}
		}
	}
	if keys < 14 {
		t.Errorf("only %d keys in the code: where are they now?", keys)
	}
	page := code("docs/reference/keys-and-tables.md")
	migrations, _ := filepath.Glob(root + "/internal/flush/sql/*/migrations/*.sql")
	added := map[string][]string{} // columns that a later migration adds, by driver and table
	for _, path := range migrations {
		for _, m := range regexp.MustCompile(`ALTER TABLE \{prefix\}(\w+) ADD COLUMN (\w+) `).FindAllStringSubmatch(code(strings.TrimPrefix(path, root)), -1) {
			table := filepath.Dir(path) + m[1]
			added[table] = append(added[table], "`"+m[2]+"`")
		}
	}
	for _, path := range migrations {
		for _, m := range regexp.MustCompile(`(?s)CREATE TABLE (?:IF NOT EXISTS )?\{prefix\}(\w+) \((.*?)\n\)`).FindAllStringSubmatch(code(strings.TrimPrefix(path, root)), -1) {
			var columns []string
			for line := range strings.Lines(m[2]) {
				if c := regexp.MustCompile("^    [\"`]?([a-z_]+)[\"`]? ").FindStringSubmatch(line); c != nil {
					columns = append(columns, "`"+c[1]+"`")
				}
			}
			columns = append(columns, added[filepath.Dir(path)+m[1]]...)
			if row := "| `baton_" + m[1] + "` | " + strings.Join(columns, ", ") + " |\n"; !strings.Contains(page, row) {
				t.Errorf("%s: the page lacks %s", path, row)
			}
		}
	}
}

// checkKeys looks at what a whole installation has left in Redis: it is on the page.
func (in *installation) checkKeys(t *testing.T) {
	t.Helper()
	have := firstCells(t, keysPage)
	out, err := in.bash("for k in $(redis-cli --scan --pattern '*baton}:*'); do [ $(redis-cli TYPE $k) = hash ] && redis-cli HKEYS $k | sed \"s|^|$k |\" || echo $k; done")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seen := 0
	for line := range strings.Lines(out) {
		key, field, _ := strings.Cut(strings.TrimSpace(line), " ")
		key = regexp.MustCompile(`:job:[\w-]+`).ReplaceAllString(strings.ReplaceAll(key, "{baton}", "{K}"), ":job:NAME")
		key = regexp.MustCompile(`:output:\S+`).ReplaceAllString(key, ":output:RUN")
		if !have[key] {
			t.Errorf("the page lacks key %s", key)
		}
		if field == "" || key == "{K}:nodes" || key == "{K}:stages" { // names of nodes, and of keys
			continue
		}
		seen++
		field = regexp.MustCompile(`^(run|progress|cancel|priority|aside):.*`).ReplaceAllString(field, "$1:")
		named := have[field] || strings.HasPrefix(field, "result_") || strings.HasPrefix(field, "told_")
		for name := range have {
			named = named || strings.HasSuffix(field, ":") && strings.HasPrefix(name, field)
		}
		if !named {
			t.Errorf("the page lacks field %s of %s", field, key)
		}
	}
	if seen < 20 {
		t.Errorf("only %d fields are there: %s", seen, out)
	}
}
