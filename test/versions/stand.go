package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"baton/internal/testsupport/ground"
)

// stand is a set of servers that the tests of one run use.
type stand struct {
	name    string
	release string // of Debian; "" means the system itself
	redis   server
	others  []server // databases of the stand
	env     []string // names the programs that testsupport starts
	// alone means that the databases belong to another stand, so only the suites of Redis are run.
	alone bool
}

// server is a server program that prints its version.
type server struct{ product, program string }

var stands = []stand{
	{name: "system", redis: server{"Redis", "redis-server"}, others: []server{postgres, mariadb}},
	{name: "trixie", release: "trixie", redis: server{"Redis", "redis-server"}, others: []server{postgres, mariadb}},
	{name: "trixie-valkey", release: "trixie", redis: valkey, env: []string{"BATON_TEST_REDIS_SERVER=valkey-server"}, alone: true},
	{name: "sid", release: "sid", redis: valkey, others: []server{postgres, {"MySQL", "mysqld"}},
		env: []string{"BATON_TEST_REDIS_SERVER=valkey-server", "BATON_TEST_MYSQL_SERVER=mysqld"}},
}

var (
	valkey   = server{"Valkey", "valkey-server"}
	postgres = server{"PostgreSQL", "postgres"}
	mariadb  = server{"MariaDB", "mariadbd"}
)

func standNames() (names []string) {
	for _, s := range stands {
		names = append(names, s.name)
	}
	return names
}

// suite is a choice of tests.
type suite struct {
	name      string
	ofRedis   bool // the tests need a Redis
	ofStore   bool // the tests need a database
	arguments []string
}

// suites lists the suites in the order of the table's columns.
var suites = []suite{
	{"lock", true, false, []string{"./internal/redislock/..."}},
	{"ledger", true, false, []string{"./internal/redisledger"}},
	{"preflight", true, false, []string{"./internal/redisconn"}},
	{"sources", true, false, []string{"./internal/flush/source/...", "-skip", "Capture"}},
	{"capture", true, false, []string{"./internal/flush/source/...", "./internal/redisconn/follow/...", "-run", "Capture|Stream|Join|Command|Slot"}},
	{"sinks", false, true, []string{"./internal/flush/sql/..."}},
	{"crashes", true, true, []string{"./test/crash"}},
	{"poison", true, true, []string{"./test/poison"}},
}

// chosenSuites returns the suites with these names, or all suites if names is empty.
func chosenSuites(names string) (chosen []suite, err error) {
	if names == "" {
		return suites, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no suite %q", name)
		}
		chosen = append(chosen, suites[i])
	}
	return chosen, nil
}

// packages lists the packages of each release, in addition to the packages that every release gets.
var packages = map[string]string{
	"trixie": "redis-server,valkey-server,postgresql-17,mariadb-server,galera-4,rsync",
	"sid":    "redis-server,valkey-server,postgresql-18,mysql-server",
}

// prepare unpacks the stand's release unless it exists. A release that was only partly unpacked has another name, so it does no harm.
func (s stand) prepare(ctx context.Context, dir string) error {
	root := s.root(dir)
	if _, err := os.Stat(root); s.release == "" || err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	half := root + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	fmt.Printf("unpacking %s into %s: some minutes\n", s.release, root)
	log, err := os.Create(root + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	// gcc is needed because a test steps a Redis' clock by a library that the test compiles.
	cmd := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include=ca-certificates,gcc,libc6-dev,pgbouncer,"+packages[s.release],
		s.release, half)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("debootstrap: %w: its output is in %s", err, log.Name())
	}
	return os.Rename(half, root)
}

func (s stand) root(dir string) string {
	if s.release == "" {
		return "/"
	}
	return filepath.Join(dir, s.release)
}

// run runs the suites, and returns a row for each server.
func (s stand) run(ctx context.Context, dir string, chosen []suite) ([]*line, error) {
	g, err := ground.NewRun()
	if err != nil {
		return nil, err
	}
	defer g.Remove()
	rows := []*line{newLine(s, s.redis, dir)}
	for _, other := range s.others {
		rows = append(rows, newLine(s, other, dir))
	}
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	for _, suite := range chosen {
		if s.alone && suite.ofStore {
			continue
		}
		log := filepath.Join(logs, s.name+"-"+suite.name+".json")
		began := time.Now()
		result, err := s.test(ctx, suite, g.Env(), s.root(dir), log)
		if err != nil {
			return nil, err
		}
		if err := s.again(ctx, result, g.Env(), s.root(dir), log); err != nil {
			return nil, err
		}
		fmt.Printf("%s, %s: %s in %s; %s\n", s.name, suite.name, result, time.Since(began).Round(time.Second), log)
		for _, test := range result.red {
			fmt.Println("  red:", test)
		}
		for i, row := range rows {
			if i == 0 && suite.ofRedis || i > 0 && suite.ofStore {
				row.results[suite.name] = result
			}
		}
	}
	return rows, nil
}

// again repeats the failed tests, each in its own run, because on a busy machine a wait may time out. It prints which tests pass then. If
// more than a few tests failed, it repeats none, because that is no accident.
func (s stand) again(ctx context.Context, of *result, env []string, root, log string) error {
	const few = 5
	if len(of.red) > few {
		return nil
	}
	for _, name := range slices.Clone(of.red) {
		pkg, test, ok := strings.Cut(name, " ")
		if !ok {
			continue // a package that failed without a failed test
		}
		alone, err := s.test(ctx, suite{arguments: []string{pkg, "-run", "^" + test + "$"}}, env, root, log+".again")
		if err != nil {
			return err
		}
		if len(alone.red) == 0 && alone.passed == 1 {
			fmt.Printf("%s: red, and green alone: %s\n", s.name, name)
			of.red = slices.DeleteFunc(of.red, func(red string) bool { return red == name })
			of.passed++
		}
	}
	return nil
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?`)

// version returns the version that the server's program prints.
func (s server) version(root string) string {
	paths, _ := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin/"+s.program)) // no error: the pattern is constant
	for _, d := range []string{"usr/sbin", "usr/bin"} {
		paths = append(paths, filepath.Join(root, d, s.program))
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		program, err := filepath.Rel(root, path)
		if err != nil {
			return ""
		}
		out, err := exec.Command("chroot", root, "/"+program, "--version").Output()
		if err == nil {
			return versionNumber.FindString(string(out))
		}
	}
	return ""
}
