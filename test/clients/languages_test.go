package clients

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"baton/internal/testsupport"
)

// language is a client library, and the program that uses the helper for it.
type language struct {
	name string
	// program prepares the program and returns its command. The caller appends Redis' address, the task, and further arguments.
	program func(t *testing.T) []string
	exec    string // the library's spelling of the command
}

// languages returns the languages that every machine with the tests' dependencies has. If BATON_CLIENTS names the folder that
// scripts/test-deps clients has filled, it returns all languages.
func languages() []language {
	all := []language{
		{"redigo", redigo, "EXEC"},
		{"go-redis", goRedis, "exec"},
		{"python", python, "EXEC"},
	}
	if packages := os.Getenv("BATON_CLIENTS"); packages != "" {
		all = append(all,
			language{"node-redis", node("redis", packages), "EXEC"},
			language{"ioredis", node("ioredis", packages), "exec"},
			language{"jedis", java, "EXEC"},
			language{"phpredis", php("phpredis"), "EXEC"},
			language{"predis", php("predis"), "EXEC"},
		)
	}
	return all
}

// helpers returns the folder of the files that applications copy.
func helpers(t *testing.T) string { return absolute(t, "../../clients") }

func redigo(t *testing.T) []string {
	return []string{testsupport.Program("baton/test/clients/testdata/redigo")(t)}
}

// goRedis builds the program in a copy of the helper's module.
func goRedis(t *testing.T) []string {
	dir := once(t, "goredis", func(dir string) {
		for _, name := range []string{"changed.go", "go.mod", "go.sum"} {
			transfer(t, filepath.Join(helpers(t), "goredis", name), filepath.Join(dir, name))
		}
		transfer(t, "testdata/goredis/main.go", filepath.Join(dir, "trial", "main.go"))
		run(t, dir, "go", "build", "-o", "trial/trial", "./trial")
	})
	return []string{filepath.Join(dir, "trial", "trial")}
}

// builds contains the folders of the programs that this process has built.
var builds = struct {
	sync.Mutex
	dirs map[string]string
}{dirs: map[string]string{}}

// once returns a folder that build has filled. It calls build only once, because compilers are slow.
func once(t *testing.T, name string, build func(dir string)) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if dir := builds.dirs[name]; dir != "" {
		return dir
	}
	dir, err := testsupport.SharedDir(name)
	if err != nil {
		t.Fatal(err)
	}
	build(dir)
	builds.dirs[name] = dir
	return dir
}

func python(t *testing.T) []string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return []string{name, absolute(t, "testdata/python/main.py"), filepath.Join(helpers(t), "python")}
		}
	}
	t.Fatal("no python3 here has the module redis: scripts/test-deps installs python3-redis")
	return nil
}

func node(client, packages string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		return []string{"node", absolute(t, "testdata/node/main.mjs"), filepath.Join(helpers(t), "node"), client, packages}
	}
}

// java compiles the program with Jedis if BATON_JEDIS is a class path with Jedis. Otherwise it uses the replacement in the examples,
// which has the same methods over a real connection.
func java(t *testing.T) []string {
	jedis := os.Getenv("BATON_JEDIS")
	dir := once(t, "java", func(dir string) {
		compile := []string{"-proc:none", "-d", dir, "-cp", cmp.Or(jedis, dir)}
		if jedis == "" {
			compile = append(compile, "-sourcepath", absolute(t, "../docs/testdata/jedis"))
		}
		run(t, "", "javac", append(compile, filepath.Join(helpers(t), "java", "Changed.java"), absolute(t, "testdata/java/Main.java"))...)
	})
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp", dir + ":" + jedis, "Main"}
}

func php(client string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		return []string{"php", absolute(t, "testdata/php/main.php"), filepath.Join(helpers(t), "php"), client}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func transfer(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}
