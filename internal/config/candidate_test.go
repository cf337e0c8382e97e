package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fileOf reads a configuration from a file, or only from flags.
func fileOf(t *testing.T, yaml string, flags map[string]string) (Config, error) {
	t.Helper()
	in := Input{Flags: func(name string) (string, bool) { v, ok := flags[name]; return v, ok }, Env: func(string) (string, bool) { return "", false }}
	if yaml != "" {
		in.Path = filepath.Join(t.TempDir(), "baton.yaml")
		if err := os.WriteFile(in.Path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Read(in)
}

func TestANodeWithoutJobsIsNoCandidateUnlessItSaysSo(t *testing.T) {
	const redis, job = "node: {id: a}\nredis: {url: redis://127.0.0.1/0}\n", "jobs: [{name: j, schedule: '@hourly', command: [/bin/true]}]\n"
	for name, c := range map[string]struct {
		yaml  string
		flags map[string]string
		want  bool
	}{
		"a file without jobs":                {yaml: redis},
		"a file without jobs, and flags":     {yaml: redis, flags: map[string]string{"lock-key": "shop"}},
		"a file with a job":                  {yaml: redis + job, want: true},
		"a file without jobs that says true": {yaml: strings.Replace(redis, "id: a", "id: a, candidate: true", 1), want: true},
		"a file with a job that says false":  {yaml: strings.Replace(redis, "id: a", "id: a, candidate: false", 1) + job},
		"flags alone":                        {flags: map[string]string{"node-id": "a", "lock-key": "shop"}, want: true},
	} {
		got, err := fileOf(t, c.yaml, c.flags)
		if err != nil || got.Node.IsCandidate() != c.want {
			t.Errorf("%s: candidate %v, error %v; want %v", name, got.Node.IsCandidate(), err, c.want)
		}
	}
}

// TestWhetherANodeIsACandidateTakesNoRestart checks that a reload can add the first job of a node or remove the last job without a restart.
func TestWhetherANodeIsACandidateTakesNoRestart(t *testing.T) {
	yes, no := Config{}.WithDefaults(), Config{}.WithDefaults()
	yes.Node.Candidate, no.Node.Candidate = new(true), new(false)
	if err := errors.Join(yes.Reloadable(no), no.Reloadable(yes)); err != nil {
		t.Error(err)
	}
}

func TestAnEmptyLockKeyIsAwaited(t *testing.T) {
	_, err := fileOf(t, "node: {id: a}\nelection: {lock_key: \"\"}\n", nil)
	if !AwaitsLockKey(err) || !strings.Contains(err.Error(), "baton.yaml:2:12: election.lock_key: is empty: write a name") {
		t.Errorf("awaits %v: %v", AwaitsLockKey(err), err)
	}
	if _, err := fileOf(t, "node: {id: a}\nelection: {lock_key: \"\"}\n", map[string]string{"lock-key": "shop"}); err != nil {
		t.Errorf("the flag names one: %v", err)
	}
	for name, yaml := range map[string]string{
		"another problem":       "node: {id: \"-\"}\nelection: {lock_key: \"\"}\n",
		"a bad key":             "election: {lock_key: \"a b\"}\n",
		"another problem alone": "electoin: {}\n",
	} {
		if _, err := fileOf(t, yaml, nil); err == nil || AwaitsLockKey(err) {
			t.Errorf("%s is awaited: %v", name, err)
		}
	}
	if c, err := fileOf(t, "node: {id: a}\n", nil); err != nil || c.Election.LockKey != "baton" {
		t.Errorf("a file that does not name a key has %q, %v; want the default", c.Election.LockKey, err)
	}
}
