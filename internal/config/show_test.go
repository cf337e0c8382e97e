package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const planted = "pl4nted-s3cret"

func TestShowReadsBackAsTheSameConfiguration(t *testing.T) {
	c, err := read(t, good, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := read(t, string(Show(c)), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, Show(c))
	}
	c.places, again.places = nil, nil
	if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	if Hash(c) != Hash(again) {
		t.Error("the hash changed")
	}
}

func TestEncodeKeepsSecretsAndDollarSigns(t *testing.T) {
	c := Default()
	c.Node.ID = "n"
	c.Redis.URL = "redis://:" + planted + "@h:1"
	c.Databases = map[string]Database{"main": {Driver: "mysql", DSNInline: "u:$${X}${Y}$@/db"}}
	again, err := read(t, string(Encode(c)), map[string]string{"X": "no", "Y": "no"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Redis.URL != c.Redis.URL || again.Databases["main"] != c.Databases["main"] {
		t.Errorf("%+v", again)
	}
	if c.Databases["main"].DSNInline != "u:$${X}${Y}$@/db" {
		t.Error("Encode changed its argument")
	}
}

func TestShowHidesSecrets(t *testing.T) {
	for _, url := range []string{
		"redis://:" + planted + "@h:1/2", "redis://joe:" + planted + "@h", "redis://" + planted + "@h", "redis://:" + planted + "@%zz",
	} {
		c := Default()
		c.Redis.URL = url
		c.Databases = map[string]Database{"main": {Driver: "postgres", DSNInline: "postgres://u:" + planted + "@h/db"}}
		shown := string(Show(c))
		if strings.Contains(shown, planted) || strings.Count(shown, "***") != 2 {
			t.Errorf("%s", shown)
		}
		if c.Redis.URL != url || c.Databases["main"].DSNInline == hidden {
			t.Error("Show changed its argument")
		}
	}
}

func TestProblemsNeverQuoteSecrets(t *testing.T) {
	for _, text := range []string{
		"redis: {url: \"http://:" + planted + "@h\"}",
		"redis: {url: \"redis://:" + planted + "@%zz\"}",
		"redis: {url: \"redis://:" + planted + "@h/x?y#z\", password_file: x, username: u}",
		"redis: {url: [\"redis://:" + planted + "@h\"]}",
		"redis: {url: \"${X}" + planted + "\"}",
		"redis: redis://:" + planted + "@h",
		"redis:\n  url: redis://:" + planted + "@h\n foo: [",
		"redis:\n  url: \"redis://:" + planted + "@h\n",
		"databases: {m: {driver: sqlite, dsn: " + planted + ", dsn_file: x}}",
		"databases: {m: " + planted + "}",
		"databases: [" + planted + "]",
		"jobs: " + planted,
		planted,
	} {
		_, err := read(t, text, nil, nil)
		if err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("%s\n→ %v", text, err)
		}
	}
}

func TestHashCoversWhatJobsDoAndNothingElse(t *testing.T) {
	base, err := read(t, good, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text string
		same bool
	}{
		"node":        {strings.Replace(good, "id: db1", "id: db2", 1), true},
		"dsn":         {strings.Replace(good, "/etc/baton", "/run", 1), true},
		"election":    {good + "election: {ttl: 20s}\n", true},
		"schedule":    {strings.Replace(good, "@every 5s", "@every 6s", 1), false},
		"driver":      {strings.Replace(good, "driver: postgres", "driver: mysql", 1), false},
		"default":     {good + "defaults: {timeout: 2h}\n", false},
		"column":      {strings.Replace(good, "missing: error", "missing: null", 1), false},
		"written out": {strings.Replace(good, "views: $value", "views: {from: $value, op: add}", 1), true},
	} {
		c, err := read(t, tc.text, nil, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if (Hash(c) == Hash(base)) != tc.same {
			t.Errorf("%s: %s and %s", name, Hash(base), Hash(c))
		}
	}
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Second: "1m30s", time.Minute: "1m", 10 * time.Second: "10s",
		10 * time.Minute: "10m", 10 * time.Hour: "10h", 61 * time.Minute: "1h1m", time.Hour + 10*time.Second: "1h0m10s",
		250 * time.Millisecond: "250ms", 20*time.Hour + 30*time.Minute: "20h30m",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(short(d)); err != nil || back != d {
			t.Errorf("%s reads back as %v, %v", short(d), back, err)
		}
	}
}

func TestRedisCredentialsComeApartFromTheAddress(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pw")
	write(t, file, planted+"\n")
	for _, tc := range []struct {
		redis                   Redis
		address, user, password string
	}{
		{Redis{URL: "redis://h:1/2"}, "redis://h:1/2", "", ""},
		{Redis{URL: "redis://:p%40ss@h:1"}, "redis://h:1", "", "p@ss"},
		{Redis{URL: "rediss://joe:x@h/1"}, "rediss://h/1", "joe", "x"},
		{Redis{URL: "redis://h", Username: "joe", PasswordFile: file}, "redis://h", "joe", planted},
	} {
		password, err := tc.redis.Password()
		if err != nil || tc.redis.Address() != tc.address || tc.redis.User() != tc.user || password != tc.password {
			t.Errorf("%+v: %q %q %q %v", tc.redis, tc.redis.Address(), tc.redis.User(), password, err)
		}
	}
	write(t, file, "rotated")
	if pw, _ := (Redis{PasswordFile: file}).Password(); pw != "rotated" {
		t.Errorf("after rotation: %q", pw)
	}
}

func TestSecretFilesThatCannotBeUsedAreNamed(t *testing.T) {
	dir := t.TempDir()
	empty, two := filepath.Join(dir, "empty"), filepath.Join(dir, "two")
	write(t, empty, "\n")
	write(t, two, planted+"\nsecond\n")
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "dsn_file: open " + dir + "/none: no such file or directory; create it or correct the path",
		empty:                      "dsn_file: " + empty + " is empty; write the secret into it, on one line",
		two:                        "dsn_file: " + two + " has more than one line; it must hold the secret alone",
		dir:                        "dsn_file: read " + dir + ": is a directory",
	} {
		if _, err := (Database{DSNFile: path}).DSN(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
