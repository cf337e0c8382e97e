package secret

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/internal/config"
)

func TestBrokenEnvFileIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\n\nnonsense planted\n": "line 3: want NAME=VALUE",
		"A-B=planted":               "line 1: a name has",
		"=planted":                  "line 1: a name has",
		"A='planted":                "line 1: the quote is not closed",
		"A=\"":                      "line 1: the quote is not closed",
		"BATON_EPOCH=planted":       "line 1: names that begin with BATON_",
		"A=\x00planted":             "line 1: there is a NUL",
	} {
		path := written(t, "env", text, 0o600)
		err := ReadEnvFile(path, map[string]string{})
		if err == nil || !strings.HasPrefix(err.Error(), "env_file "+path+", "+want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%q: %v, want %q, and nothing of the line", text, err, want)
		}
	}
	for text, want := range map[string]string{"": "is empty", "\n": "is empty", "a\nb\n": "not one line", "a\x00": "not one line"} {
		if _, err := ReadFile(written(t, "secret", text, 0o600)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("secret %q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadFile("/dev/zero"); err == nil {
		t.Error("a device was read")
	}
}

func TestSecretsAreTakenOut(t *testing.T) {
	for _, c := range []struct {
		secrets    []string
		text, want string
	}{
		{nil, "hush", "hush"},
		{[]string{"hush"}, "a hush b hushhush", "a *** b ******"},
		{[]string{"hush"}, "hus hush hus", "hus *** hus"},
		{[]string{"abc", "abcd"}, "abc abcd abcx", "*** *** ***x"},
		{[]string{"bc", "abcd"}, "abcd abce xbc", "*** a***e x***"},
		{[]string{"aab"}, "aaab aa", "a*** aa"},
		{[]string{"one", "two"}, "two one", "*** ***"},
		// Of those that overlap nothing is left, neither a beginning nor an end.
		{[]string{"abcdef", "cdefgh"}, "-abcdefgh-", "-***-"},
		{[]string{"abcd", "cdef", "efgh"}, "abcdefghi abcdx", "***i ***x"},
		{[]string{"aa"}, "aaaaa a", "*** a"},
		{[]string{"hush", "hush-hush"}, "hush-hush hush-hus", "*** ***-hus"},
	} {
		for size := 1; size <= len(c.text); size++ { // in pieces of any size
			r := NewRedactor(c.secrets)
			var out bytes.Buffer
			write := func(b []byte) { out.Write(b) }
			for piece := range slices.Chunk([]byte(c.text), size) {
				r.Pass(piece, false, write)
			}
			r.Pass(nil, true, write)
			if out.String() != c.want {
				t.Errorf("%q of %q by %d: %q, want %q", c.secrets, c.text, size, out.String(), c.want)
			}
		}
	}
}

// Every place of the configuration that can hold a secret is looked for in its file.
func TestEverySecretOfAConfigurationIsKnown(t *testing.T) {
	c := config.Default()
	c.Redis.URL = "redis://:in%40url@127.0.0.1:1"
	c.Redis.PasswordInline = "plain-password"
	c.Redis.Quorum = []string{"redis://127.0.0.1:2", "redis://u:in-quorum@127.0.0.1:1"}
	c.Redis.Sentinel = &config.Sentinel{PasswordInline: "of-sentinel", PasswordFile: "/f/sentinel"}
	c.Redis.TLS, c.HTTP.TLS = &config.TLS{KeyFile: "/f/redis.key"}, &config.ServerTLS{KeyFile: "/f/http.key"}
	c.Redis.PasswordFile, c.HTTP.TokenFile = "/f/redis", "/f/token"
	c.Databases = map[string]config.Database{"p": {Driver: "postgres", DSNInline: "postgres://in-dsn", DSNFile: "/f/p"}, "s": {Driver: "sqlite", DSNInline: "/no/secret.db"}}
	c.Notify = []config.Notify{{Name: "ops", Webhook: &config.Webhook{URL: "https://hooks.example/in-hook", URLFile: "/f/hook", TokenFile: "/f/hook-token"}}, {Name: "cmd"}}
	c.Jobs = []config.Job{{Name: "j", DeadMansSwitch: &config.Webhook{URL: "https://ping.example/in-switch", URLFile: "/f/switch"}, EnvFile: "/f/env",
		Env: map[string]string{"API_TOKEN": "in-env", "LANG": "de_DE.UTF-8"}, Secrets: map[string]string{"A": "/f/a", "B": "/f/b"}}}
	got := Inline(c)
	for key, want := range map[string]string{
		"redis.password": "plain-password", "redis.url": "in%40url", "redis.quorum[1]": "in-quorum", "redis.sentinel.password": "of-sentinel", "databases.p.dsn": "postgres://in-dsn",
		"webhook of notification ops": "in-hook", "dead_mans_switch of job j": "in-switch", "env.API_TOKEN of job j": "in-env",
	} {
		if got[key] != want {
			t.Errorf("%s: %q, want %q as it stands in the file", key, got[key], want)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d: %q", len(got), got)
	}
	want := strings.Fields("/f/a /f/b /f/env /f/hook /f/hook-token /f/http.key /f/p /f/redis /f/redis.key /f/sentinel /f/switch /f/token")
	if files := Files(c); !slices.Equal(files, want) {
		t.Errorf("%q, want %q", files, want)
	}
}

func written(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// A guess by the name of a variable must not blot out counts, paths and plain words.
func TestOnlyWhatLooksLikeASecretIsTakenForOne(t *testing.T) {
	for variable, want := range map[string]string{
		"KEY_COUNT=1000":                                            "",
		"KEY_COUNT=10000000":                                        "",
		"SORT_KEY=created_at":                                       "",
		"KEY_PREFIX=articles:":                                      "",
		"MONKEY=abcdefgh1234":                                       "",
		"AUTHOR=ada-lovelace-1815":                                  "",
		"TOKENIZER=wordpiece-30522":                                 "",
		"CURL=curl-8-with-http3":                                    "",
		"BASE_URL=/srv/report-2024/out":                             "",
		"BASE_URL=https://db1.example/report":                       "",
		"BASE_URL=https://reports2.example":                         "",
		"SSH_AUTH_SOCK=/tmp/ssh-4x/agent.17":                        "",
		"TOKEN_FILE=/run/secrets/token-1":                           "",
		"PASSWORD=short":                                            "",
		"PASSWORD=/long/enough":                                     "/long/enough",
		"PASSWORD=only-words-here":                                  "only-words-here",
		"PGPASSWORD2=only-words":                                    "only-words",
		"apiKey=only-words":                                         "only-words",
		"REPORT_DSN=u:p@tcp(db)/x":                                  "u:p@tcp(db)/x",
		"API-KEY=ab3/x9+Q==":                                        "ab3/x9+Q==",
		"KEY_OF_ALL=abcdefghijklmnop":                               "abcdefghijklmnop",
		"HTTP_AUTH=Basic dXNlcjpwNTU0":                              "dXNlcjpwNTU0",
		"HOOK_URL=https://h.example/services/T00X8801?key=a1b2c3d4": "T00X8801 a1b2c3d4",
		"DATABASE_URL=postgres://u:hush@db/x":                       "hush",
	} {
		name, value, _ := strings.Cut(variable, "=")
		if got := strings.Join(InVariable(name, value), " "); got != want {
			t.Errorf("of %s %q is secret, want %q", variable, got, want)
		}
	}
}
