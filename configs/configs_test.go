package configs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"baton/configs"
	"baton/internal/config"
	"baton/internal/flush/source/spec"
)

func load(t *testing.T, text []byte) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baton.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Read(config.Input{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExampleIsValid(t *testing.T) {
	c := load(t, configs.Example)
	if len(c.Jobs) != 2 || c.Jobs[0].Flush.From.Type != spec.Counters || c.Jobs[1].Flush.From.Type != spec.Hashes {
		t.Errorf("want a job of each kind, got %+v", c.Jobs)
	}
}

// The example names defaults in keys that are commented out, and writes out
// others: taking both at their word must change nothing.
func TestExampleShowsTheDefaults(t *testing.T) {
	written := regexp.MustCompile(`(?m)^  # (priority|candidate|database|username|heartbeat_interval|attempt_timeout|poll_interval|drain|acquire|lock_format|wait_replicas|abdicate_after|rollout_within):`)
	if n := len(written.FindAll(configs.Example, -1)); n != 13 {
		t.Fatalf("%d keys are commented out", n)
	}
	shown := config.Show(load(t, configs.Example))
	uncommented := config.Show(load(t, written.ReplaceAll(configs.Example, []byte("  $1:"))))
	if !bytes.Equal(shown, uncommented) {
		t.Errorf("the defaults differ:\n%s\n%s", shown, uncommented)
	}
	c, d := load(t, configs.Example), config.Default().WithDefaults()
	if !reflect.DeepEqual(c.Redis, d.Redis) || c.Election != d.Election || !reflect.DeepEqual(c.HTTP, d.HTTP) || c.Log != d.Log || c.History != d.History || c.Defaults != d.Defaults {
		t.Errorf("the example departs from the defaults: %+v", c)
	}
}

// So do those of a flush, and the jobs that are commented out are valid.
func TestExampleShowsEverySource(t *testing.T) {
	sizes := regexp.MustCompile(`(?m)^      # (lanes|batch_rows|batch_bytes|dead_letters):`)
	if n := len(sizes.FindAll(configs.Example, -1)); n != 4 {
		t.Fatalf("%d sizes are commented out", n)
	}
	shown := config.Show(load(t, configs.Example))
	if uncommented := config.Show(load(t, sizes.ReplaceAll(configs.Example, []byte("      $1:")))); !bytes.Equal(shown, uncommented) {
		t.Errorf("the defaults differ:\n%s\n%s", shown, uncommented)
	}
	before, commented, found := bytes.Cut(configs.Example, []byte("  # - name: orders"))
	if !found {
		t.Fatal("no job is commented out")
	}
	commented, _, _ = bytes.Cut(commented, []byte("  # Commands:"))
	jobs := regexp.MustCompile(`(?m)^  # `).ReplaceAll(append([]byte("  # - name: orders"), commented...), []byte("  "))
	var types []string
	for _, j := range load(t, slices.Concat(before, jobs)).Jobs {
		types = append(types, j.Flush.From.Type)
	}
	if !slices.Equal(types, []string{spec.Counters, spec.Hashes, spec.List, spec.Stream, spec.Scan, spec.Capture}) {
		t.Errorf("jobs of %q", types)
	}
}

// With every comment taken off that has a setting, all policies, commands and
// notifications are set, and valid.
func TestExampleShowsEveryPolicy(t *testing.T) {
	before, jobs, found := bytes.Cut(configs.Example, []byte("  # - name: report\n"))
	if !found {
		t.Fatal("no command is commented out")
	}
	jobs = regexp.MustCompile(`(?m)^  # `).ReplaceAll(append([]byte("  # - name: report\n"), jobs...), []byte("  "))
	jobs = regexp.MustCompile(`(?m)^    # `).ReplaceAll(jobs, []byte("    "))
	head, before, _ := bytes.Cut(before, []byte("# max_concurrent_jobs:"))
	before = append([]byte("# max_concurrent_jobs:"), before...)
	for _, r := range []struct{ comment, setting string }{
		{`(?m)^# (max_concurrent_jobs:|notify:|  )`, "$1"}, // of the whole file
		{`(?m)^(    |      )# (jobs|token_file|format|timeout|give_up_after):`, "$1$2:"},
		{`(?m)^  # (max_overlap|starting_deadline|jitter|late_after|retry|  limit|  delay|  max_delay):`, "  $1:"},
	} {
		comment := regexp.MustCompile(r.comment)
		if !comment.Match(before) {
			t.Errorf("nothing like %s is commented out", r.comment)
		}
		before = comment.ReplaceAll(before, []byte(r.setting))
	}
	before = bytes.Replace(before, []byte("jitter: 30s"), []byte("jitter: 1s"), 1) // for jobs that are due each 5 s
	c := load(t, slices.Concat(head, before, jobs))
	report := c.Jobs[len(c.Jobs)-2]
	for _, part := range []any{c.Defaults, report, c.Notify[0], *c.Notify[0].Webhook} {
		v := reflect.ValueOf(part)
		for _, f := range reflect.VisibleFields(v.Type()) {
			if slices.Contains([]string{"Flush", "Shell", "Command", "URL"}, f.Name) {
				continue // set elsewhere, or instead
			}
			if v.FieldByIndex(f.Index).IsZero() {
				t.Errorf("%T: the example does not show %s", part, f.Name)
			}
		}
	}
	if c.MaxConcurrentJobs == 0 || len(c.Notify) != 2 || len(c.Notify[1].Command) == 0 || !c.Jobs[len(c.Jobs)-1].Shell {
		t.Errorf("%+v", c)
	}
}

// uncomment takes the comment off key of redis: and off what is below it.
func uncomment(t *testing.T, text []byte, key string) []byte {
	t.Helper()
	block := regexp.MustCompile(`(?m)^  # ` + key + `:.*\n(?:  #   .*\n)*`)
	if !block.Match(text) {
		t.Fatalf("no %s is commented out", key)
	}
	return block.ReplaceAllFunc(text, func(b []byte) []byte {
		return regexp.MustCompile(`(?m)^  # `).ReplaceAll(b, []byte("  "))
	})
}

func TestExampleShowsEveryDeployment(t *testing.T) {
	url := []byte("  url: redis://127.0.0.1:6379/0\n")
	if !bytes.Contains(configs.Example, url) {
		t.Fatalf("no %s", url)
	}
	without := bytes.Replace(configs.Example, url, nil, 1)
	encrypted := bytes.Replace(configs.Example, []byte("redis://127.0.0.1:6379/0"), []byte("rediss://127.0.0.1:6379/0"), 1)
	addresses := func(port string) []string {
		return []string{"10.0.0.1:" + port, "10.0.0.2:" + port, "10.0.0.3:" + port}
	}

	sentinel := load(t, uncomment(t, uncomment(t, without, "sentinel"), "password_file")).Redis
	if s := sentinel.Sentinel; sentinel.URL != "" || s == nil || s.Master != "mymaster" || !slices.Equal(s.Addresses, addresses("26379")) ||
		s.PasswordFile == "" || sentinel.PasswordFile == "" || sentinel.PasswordFile == s.PasswordFile {
		t.Errorf("sentinel: %+v", sentinel)
	}
	if cluster := load(t, uncomment(t, without, "cluster")).Redis; !slices.Equal(cluster.Cluster, addresses("7000")) {
		t.Errorf("cluster: %+v", cluster)
	}
	if quorum := load(t, uncomment(t, configs.Example, "quorum")).Redis; len(quorum.Masters()) != 3 {
		t.Errorf("quorum: %+v", quorum)
	}
	for _, text := range [][]byte{encrypted, uncomment(t, without, "cluster"), uncomment(t, without, "sentinel")} {
		if tls := load(t, uncomment(t, text, "tls")).Redis.TLS; tls == nil || tls.CAFile == "" || tls.CertFile == "" || tls.KeyFile == "" || tls.ServerName == "" {
			t.Errorf("tls: %+v", tls)
		}
	}
}
