package configs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"baton/configs"
	"baton/internal/config"
	"baton/internal/flush"
)

func load(t *testing.T, text []byte) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baton.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Read(config.Input{Path: path, Checks: config.Checks{
		Key:    func(p string) error { _, err := flush.ExpandKey(p); return err },
		RowKey: func(p string) error { _, err := flush.ParseRowKey(p); return err },
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExampleIsValid(t *testing.T) {
	c := load(t, configs.Example)
	if len(c.Jobs) != 2 || c.Jobs[0].Flush.From.Type != config.Counters || c.Jobs[1].Flush.From.Type != config.Hashes {
		t.Errorf("want a job of each kind, got %+v", c.Jobs)
	}
}

// The example names defaults in keys that are commented out, and writes out
// others: taking both at their word must change nothing.
func TestExampleShowsTheDefaults(t *testing.T) {
	written := regexp.MustCompile(`(?m)^  # (heartbeat_interval|attempt_timeout|poll_interval|drain|username):`)
	if n := len(written.FindAll(configs.Example, -1)); n != 5 {
		t.Fatalf("%d keys are commented out", n)
	}
	shown := config.Show(load(t, configs.Example))
	uncommented := config.Show(load(t, written.ReplaceAll(configs.Example, []byte("  $1:"))))
	if !bytes.Equal(shown, uncommented) {
		t.Errorf("the defaults differ:\n%s\n%s", shown, uncommented)
	}
	c, d := load(t, configs.Example), config.Default().WithDefaults()
	if !reflect.DeepEqual(c.Redis, d.Redis) || c.Election != d.Election || c.HTTP != d.HTTP || c.Log != d.Log || c.Defaults != d.Defaults {
		t.Errorf("the example departs from the defaults: %+v", c)
	}
}
