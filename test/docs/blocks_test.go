package docs

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/testsupport/walk"
)

const root = "../.."

// pages are all that people read.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, page := range []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md", "clients/README.md"} {
		all = append(all, filepath.Join(root, page))
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What a block of each kind has to stand. A block of another kind, or of none, fails the
// test: nobody has said how it is to be checked.
func kinds() map[string]func(*testing.T, *installation, walk.Block) {
	elsewhere := func(t *testing.T, _ *installation, b walk.Block) {
		t.Helper()
		if filepath.Base(b.Page) != "sources.md" {
			t.Errorf("%s: %s is run of sources.md only", b, b.Kind)
		}
	}
	return map[string]func(*testing.T, *installation, walk.Block){
		"sh":        checkShell,
		"yaml":      func(t *testing.T, _ *installation, b walk.Block) { t.Helper(); checkYAML(t, b.String(), b.Text) },
		"json":      checkJSON,
		"ini":       checkUnit,
		"crontab":   checkCrontab,
		"text":      func(*testing.T, *installation, walk.Block) {}, // what is printed, or a drawing
		"redis-cli": checkRedis,
		"sql":       checkSQL,
		"go": func(t *testing.T, in *installation, b walk.Block) {
			t.Helper()
			if filepath.Base(b.Page) == "library.md" {
				checkProgram(t, b)
				return
			}
			elsewhere(t, in, b)
		},
		// TestTheExamplesOfEverySourceReachTheirTables runs these, and those in Go.
		"python": elsewhere, "java": elsewhere, "result": elsewhere,
	}
}

// blocks are those of all pages, but of the Chinese ones: TestTwinsHaveTheSameCodeAndParts compares these.
func blocks(t *testing.T) []walk.Block {
	t.Helper()
	var all []walk.Block
	for _, page := range pages(t) {
		if strings.HasSuffix(page, chinese) {
			continue
		}
		of, err := walk.Read(page)
		if err != nil {
			t.Error(err)
		}
		all = append(all, of...)
	}
	return all
}

// Every configuration of every page loads. make test does not run TestEveryBlockIsRunOrChecked, which
// has daemons and servers.
func TestEveryConfigurationLoads(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, b := range blocks(t) {
		if b.Host != "" || !slices.Contains([]string{"yaml", "json", "ini"}, b.Kind) {
			continue
		}
		counts[b.Kind]++
		kinds()[b.Kind](t, nil, b)
	}
	for kind, least := range map[string]int{"yaml": 40, "json": 3, "ini": 2} {
		if counts[kind] < least {
			t.Errorf("found %d blocks of kind %s: this test looks in the wrong place", counts[kind], kind)
		}
	}
}

// Every block of every page is what its kind says: configurations load, commands run.
func TestEveryBlockIsRunOrChecked(t *testing.T) {
	t.Parallel()
	in := install(t)
	kinds := kinds()
	counts := map[string]int{}
	for _, b := range blocks(t) {
		counts[b.Kind]++
		if b.Host != "" {
			continue // TestTutorialToTheLetter
		}
		check := kinds[b.Kind]
		if check == nil {
			t.Errorf("%s: a block of kind %q: name one of those that the test knows", b, b.Kind)
			continue
		}
		check(t, in, b)
	}
	t.Logf("blocks: %v", counts)
	in.checkKeys(t)
	in.report(t)
}

var topLevel = regexp.MustCompile(`(?m)^(node|redis|election|http|log|databases|max_concurrent_jobs|history|notify|defaults|jobs|groups):`)

// checkYAML loads a configuration. A job by itself, and a file without databases, get what
// is missing.
func checkYAML(t *testing.T, where, text string) {
	t.Helper()
	if strings.HasPrefix(text, "- name:") {
		text = "jobs:\n" + indent(text)
	}
	if !topLevel.MatchString(text) {
		t.Errorf("%s: this is no configuration of baton, nor a job of one", where)
		return
	}
	if !strings.Contains(text, "\ndatabases:") && !strings.HasPrefix(text, "databases:") {
		text += "\ndatabases:\n"
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`database: ([a-z][\w-]*)`).FindAllStringSubmatch(text, -1) {
			if !seen[m[1]] {
				text += "  " + m[1] + ": {driver: sqlite, dsn: /var/lib/baton/x.db}\n"
			}
			seen[m[1]] = true
		}
		if len(seen) == 0 {
			text = strings.TrimSuffix(text, "databases:\n")
		}
	}
	// Jobs that a notification names, and that the page has shown before.
	for _, m := range regexp.MustCompile(`(?m)^\s+jobs: \[([\w-]+)\]`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, "- name: "+m[1]) {
			text += "\njobs:\n  - {name: " + m[1] + ", schedule: \"@daily\", command: [/bin/true]}\n"
		}
	}
	path := filepath.Join(t.TempDir(), "baton.yaml")
	write(t, path, text)
	_, err := config.Read(config.Input{
		Path: path,
		Env: func(name string) (string, bool) {
			return "/run/credentials/" + name, !strings.HasPrefix(name, "BATON_")
		},
	})
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, text)
	}
}

func checkJSON(t *testing.T, _ *installation, b walk.Block) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(b.Text), &v); err != nil {
		t.Errorf("%s: %v", b, err)
	}
}

var unitLine = regexp.MustCompile(`^(\[(Unit|Service|Install|Socket)\]|[A-Z][A-Za-z]+=.*|[#;].*|)$`)

// checkUnit looks at a part of a unit, or a drop-in.
func checkUnit(t *testing.T, _ *installation, b walk.Block) {
	t.Helper()
	if !strings.HasPrefix(b.Text, "[") {
		t.Errorf("%s: settings without a section", b)
	}
	for line := range strings.Lines(b.Text) {
		if !unitLine.MatchString(strings.TrimSpace(line)) {
			t.Errorf("%s: systemd has no such line: %s", b, line)
		}
	}
}

var cronLine = regexp.MustCompile(`^(\S+ +){5}(.*)$`)

// checkCrontab parses what baton is told in a crontab, and that a job could have the
// line's schedule.
func checkCrontab(t *testing.T, in *installation, b walk.Block) {
	t.Helper()
	for line := range strings.Lines(b.Text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || regexp.MustCompile(`^[A-Z]+=`).MatchString(line) {
			continue
		}
		m := cronLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%s: no line of a crontab: %s", b, line)
			continue
		}
		schedule := strings.Join(strings.Fields(line)[:5], " ")
		checkYAML(t, b.String(), "- name: line\n  schedule: \""+schedule+"\"\n  command: [/bin/true]\n")
		if _, command, ok := strings.Cut(m[2], "baton "); ok {
			in.parse(t, b.String(), "baton "+command)
		}
	}
}

func checkRedis(t *testing.T, in *installation, b walk.Block) {
	t.Helper()
	if slices.Contains([]string{"sources.md"}, filepath.Base(b.Page)) {
		return // TestTheExamplesOfEverySourceReachTheirTables runs these
	}
	out, err := in.bash("redis-cli <<'END'\n" + b.Text + "END\n")
	if err != nil || strings.Contains(out, "ERR") || strings.Contains(out, "WRONGTYPE") {
		t.Errorf("%s: %v: %s", b, err, out)
	}
}

func checkSQL(t *testing.T, in *installation, b walk.Block) {
	t.Helper()
	if filepath.Base(b.Page) == "sources.md" {
		return // the same
	}
	if _, err := in.db.Query(t.Context(), b.Text); err != nil {
		t.Errorf("%s: %v", b, err)
	}
}

// checkProgram compiles a whole program in Go.
func checkProgram(t *testing.T, b walk.Block) {
	t.Helper()
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "reports")
	err = errors.Join(os.Mkdir(program, 0o700), os.Symlink(module, filepath.Join(dir, "baton")),
		os.WriteFile(filepath.Join(program, "main.go"), []byte(b.Text), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	all, err := walk.Read(b.Page)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(o walk.Block) bool { return strings.Contains(o.Text, "go mod edit") })
	if at < 0 {
		t.Fatalf("%s does not say how a program finds the module", b.Page)
	}
	build := exec.Command("sh", "-ec", all[at].Text)
	build.Dir = program
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%s, built as the page says: %v\n%s", b, err, out)
	}
}
