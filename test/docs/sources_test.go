package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

const sourcesPage = "../../docs/sources.md"

// section is one source of the page, its code blocks by their language.
type section struct {
	title  string
	blocks map[string]string
}

// language runs the blocks of all sections against a Redis.
type language struct {
	name string
	run  func(t *testing.T, addr string, blocks []string)
}

func languages(t *testing.T) []language {
	all := []language{{"redis-cli", runRedisCLI}, {"go", runGo}, {"python", runPython}}
	if _, err := exec.LookPath("javac"); err == nil {
		return append(all, language{"java", runJava})
	}
	t.Log("there is no Java here: its examples are not run")
	return all
}

// Whatever language an application is written in: what the page has it send is in the
// table that the page shows.
func TestTheExamplesOfEverySourceReachTheirTables(t *testing.T) {
	sections := read(t, sourcesPage)
	if len(sections) != 10 {
		t.Fatalf("the page has %d sections with a job, not 10", len(sections))
	}
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			redis, db := testsupport.StartRedis(t), testsupport.SQLite(t)
			config := fmt.Sprintf("node: {id: docs}\nredis: {url: %q}\nhttp: {listen: \"off\"}\n"+
				"databases: {main: {driver: sqlite, dsn: %q}}\njobs:\n", redis.URL(), db.DSN)
			var blocks []string
			for _, s := range sections {
				config += indent(s.blocks["yaml"])
				db.Exec(t, s.blocks["sql"])
				blocks = append(blocks, s.blocks[l.name])
			}
			l.run(t, redis.Addr(), blocks)
			path := filepath.Join(t.TempDir(), "docs.yaml")
			write(t, path, config)
			cluster.StartNode(t, path, nil)
			for _, s := range sections {
				await(t, db, s)
			}
		})
	}
}

// read finds the sections that have a job, and refuses one that lacks a language.
func read(t *testing.T, path string) []section {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []section
	for part := range strings.SplitSeq(string(text), "\n## ") {
		title, rest, _ := strings.Cut(part, "\n")
		s := section{title: title, blocks: map[string]string{}}
		fences := strings.Split(rest, "```")
		for i := 1; i < len(fences); i += 2 {
			name, code, _ := strings.Cut(fences[i], "\n")
			if s.blocks[name] != "" {
				t.Errorf("section %q has two blocks of %s", title, name)
			}
			s.blocks[name] = code
		}
		if s.blocks["yaml"] == "" {
			continue
		}
		for _, name := range []string{"sql", "redis-cli", "go", "python", "java", "result"} {
			if s.blocks[name] == "" {
				t.Errorf("section %q has no block of %s", title, name)
			}
		}
		all = append(all, s)
	}
	return all
}

func indent(yaml string) string {
	var out strings.Builder
	for line := range strings.Lines(yaml) {
		out.WriteString("  " + line)
	}
	return out.String()
}

// await waits for a section's result: a query, and the rows that it must answer.
func await(t *testing.T, db *testsupport.Database, s section) {
	t.Helper()
	query, rows, _ := strings.Cut(strings.TrimSpace(s.blocks["result"]), "\n")
	want := strings.Split(rows, "\n")
	testsupport.AwaitNoError(t, fmt.Sprintf("section %q has its rows", s.title), func() error {
		var got []string
		for _, row := range db.Rows(t, query) {
			got = append(got, strings.Join(row, " "))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("%s: got %q, want %q", query, got, want)
		}
		return nil
	})
}

func runRedisCLI(t *testing.T, addr string, blocks []string) {
	host, port, _ := strings.Cut(addr, ":")
	out := execute(t, "", strings.Join(blocks, "\n"), "redis-cli", "-h", host, "-p", port)
	if strings.Contains(out, "ERR") {
		t.Fatalf("redis-cli: %s", out)
	}
}

func runGo(t *testing.T, addr string, blocks []string) {
	var code strings.Builder
	code.WriteString("package main\n\nimport (\n\"encoding/json\"\n\"fmt\"\n\"os\"\n\n\"github.com/gomodule/redigo/redis\"\n)\n\n" +
		"func must(err error) {\nif err != nil {\npanic(err)\n}\n}\n\nfunc main() {\nr, err := redis.Dial(\"tcp\", os.Args[1])\nmust(err)\n_, _ = json.Marshal(fmt.Sprint())\n")
	for _, block := range blocks {
		fmt.Fprintf(&code, "{\n%smust(err)\n}\n", block)
	}
	code.WriteString("}\n")
	// Inside the module, so that its libraries are there, but on no disk; a name that begins
	// with a dot is no package of it. Nothing in it differs from run to run: it is built once.
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir, shown := t.TempDir(), filepath.Join(module, "test/docs/.examples/main.go")
	write(t, filepath.Join(dir, "main.go"), code.String())
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {shown: filepath.Join(dir, "main.go")}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	execute(t, "", "", "go", "run", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), shown, addr)
}

func runPython(t *testing.T, addr string, blocks []string) {
	host, port, _ := strings.Cut(addr, ":")
	code := fmt.Sprintf("import json\nimport redis\n\nr = redis.Redis(host=%q, port=%s)\n\n", host, port) + strings.Join(blocks, "\n")
	execute(t, "", code, python(t), "-")
}

// python is one that has the library of the examples.
func python(t *testing.T) string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	t.Fatal("no python3 here has the module redis: scripts/test-deps installs python3-redis")
	return ""
}

func runJava(t *testing.T, addr string, blocks []string) {
	host, port, _ := strings.Cut(addr, ":")
	var code strings.Builder
	code.WriteString("public class Main {\npublic static void main(String[] args) throws Exception {\n")
	fmt.Fprintf(&code, "try (var r = new redis.clients.jedis.Jedis(%q, %s)) {\n", host, port)
	for _, block := range blocks {
		code.WriteString("{\n" + block + "}\n")
	}
	code.WriteString("}\n}\n}\n")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Main.java"), code.String())
	// What runs for a moment is not worth the better compiler, nor a file for those who watch it.
	brief := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"}
	compile := []string{"-proc:none", "-d", dir, "-sourcepath", "testdata/jedis", filepath.Join(dir, "Main.java")}
	for _, option := range brief {
		compile = append(compile, "-J"+option)
	}
	execute(t, "", "", "javac", compile...)
	execute(t, "", "", "java", append(brief, "-cp", dir, "Main")...)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, dir, input, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", name, err, out, input)
	}
	return string(out)
}
