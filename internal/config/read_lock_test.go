package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readLock(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baton.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadLock(Input{Path: path, Env: func(name string) (string, bool) { return "secret", name == "REDIS_PASSWORD" }})
}

// TestWhereTheLockIsDoesNotDependOnTheRestOfTheFile checks that an operator who makes the file invalid while the daemon runs with the old
// file does not prevent the release of the lock.
func TestWhereTheLockIsDoesNotDependOnTheRestOfTheFile(t *testing.T) {
	const lock = "redis:\n  url: redis://10.0.0.1:7000/0\n  password: ${REDIS_PASSWORD}\nelection:\n  lock_format: redisson\n"
	for name, rest := range map[string]string{
		"nothing":                     "",
		"a job with an unknown key":   "jobs:\n  - naam: report\n",
		"a job without anything":      "jobs:\n  -\n",
		"a database that is none":     "databases:\n  main: {driver: oracle}\n",
		"an unknown section":          "jops: []\n",
		"a section that is set twice": "log: {level: info}\nlog: {level: info}\n",
		"a variable that is not set":  "databases:\n  main: {driver: postgres, dsn: \"${NOT_SET}\"}\n",
		"text that is no YAML":        "jobs:\n  - name: report\n   schedule: [\n",
		"a bracket that is open":      "jobs: [{name: report\n",
		"a tab":                       "jobs:\n\t- name: report\n",
		"a node that is none":         "node: {id: \"a b\", priority: 5000}\n",
	} {
		for order, text := range map[string]string{"above": rest + lock, "below": lock + rest} {
			c, err := readLock(t, text)
			if err != nil || c.Redis.URL != "redis://10.0.0.1:7000/0" || c.Redis.PasswordInline != "secret" || c.Election.LockFormat != FormatRedisson || c.Jobs != nil || c.Databases != nil {
				t.Errorf("%s, %s: %+v, %v", name, order, c.Redis, err)
			}
		}
	}
	// Invalid times of the election also do not matter.
	if c, err := readLock(t, lock+"  ttl: 1s\n  drain: 5s\n  lock_key: \"a b\"\n"); err != nil || c.Election.LockFormat != FormatRedisson {
		t.Errorf("%+v, %v", c.Election, err)
	}
}

// TestAnUncertainPlaceOfTheLockIsAnError checks that no lock is released if it is unclear which lock is meant.
func TestAnUncertainPlaceOfTheLockIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"redis: {url: http://a}\n":                            ":1:9: redis.url: write redis://",
		"redis: {ulr: redis://a:1}\njobs: [\n":                "redis.ulr: unknown key",
		"redsi: {url: redis://a:1}\n":                         ":1:1: redsi: unknown key; did you mean redis?",
		"redis: {password: \"${NOT_SET}\"}\n":                 "NOT_SET is not set",
		"redis: {url: redis://a:1, cluster: [\"b:1\"]}\n":     "keep one of them",
		"redis:\n  url: redis://a:1\n ? [\njobs:\n  - a\n":    "not YAML",
		"election: {lock_format: hash}\njobs: 5\n":            "election.lock_format",
		"{redis: {url: redis://a:1}, jobs: [{name: report}\n": "not YAML",
		"jobs: [\n": "not YAML",
		"redis: {url: redis://a:1}\n---\nredis: {url: redis://b:1}\n": "set twice",
	} {
		if c, err := readLock(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, c.Redis, err, want)
		}
	}
	if _, err := ReadLock(Input{Path: filepath.Join(t.TempDir(), "none.yaml")}); err == nil || !strings.Contains(err.Error(), "read the configuration") {
		t.Errorf("no file: %v", err)
	}
	large := strings.Repeat("# x\n", maxFile/4) + "redis: {url: redis://a:1}\n"
	if _, err := readLock(t, large); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a large file: %v", err)
	}
}
