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
		"A=1\n\nnonsense planted\n": "line 3: write NAME=VALUE",
		"A-B=planted":               "line 1: a name has",
		"=planted":                  "line 1: a name has",
		"A='planted":                "line 1: the quote is not closed",
		"A=\"":                      "line 1: the quote is not closed",
		"BATON_EPOCH=planted":       "line 1: names that begin with BATON_",
		"A=\x00planted":             "line 1: the text has a NUL",
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

func TestByteOrderMarkOfAFileIsNoPartOfASecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("\ufeffTOKEN=planted-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	if err := ReadEnvFile(file, set); err != nil || set["TOKEN"] != "planted-secret" {
		t.Errorf("%q (%v)", set, err)
	}
	if value, err := ReadFile(file); err != nil || value != "TOKEN=planted-secret" {
		t.Errorf("%q (%v)", value, err)
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
		// Overlapping secrets are removed completely, including their beginnings and ends.
		{[]string{"abcdef", "cdefgh"}, "-abcdefgh-", "-***-"},
		{[]string{"abcd", "cdef", "efgh"}, "abcdefghi abcdx", "***i ***x"},
		{[]string{"aa"}, "aaaaa a", "*** a"},
		{[]string{"hush", "hush-hush"}, "hush-hush hush-hus", "*** ***-hus"},
	} {
		for size := 1; size <= len(c.text); size++ { // pieces of every size
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

// TestEverySecretOfAConfigurationIsKnown checks that Inline finds the secret at every place of the configuration that can contain one.
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

// TestWhatFilesOfTheConfigurationHoldIsKnown checks secrets that a command may have read by itself: the passwords in all files of the
// configuration, and the values in the env_file of another job.
func TestWhatFilesOfTheConfigurationHoldIsKnown(t *testing.T) {
	c := config.Default()
	c.Redis.URL = "redis://:hush@127.0.0.1:1"
	c.Databases = map[string]config.Database{
		"words": {Driver: "postgres", DSNFile: written(t, "words", "host=db password='words-in-file' user=u\n", 0o600)},
		"mysql": {Driver: "mysql", DSNFile: written(t, "mysql", "u:mysql@in-file@tcp(db:3306)/x\n", 0o600)},
		"here":  {Driver: "mysql", DSNInline: "u:inline@here@/x"},
	}
	c.Jobs = []config.Job{
		{Name: "one", EnvFile: written(t, "env-one", "LEVEL=debug\nANY=nobody-sees-this\nAT=u:of-env-file@tcp(db)/x\n", 0o600)},
		{Name: "two", EnvFile: written(t, "env-two", "OTHER='and nor this'\n", 0o600), Env: map[string]string{"AT": "u:of-env@tcp(db)/x", "STAGE": "production-one"},
			Secrets: map[string]string{"A": written(t, "a", "in-secret-file\n", 0o600)}},
	}
	known := Known(c)
	for _, want := range []string{"hush", "words-in-file", "mysql@in-file", "inline@here", "nobody-sees-this", "and nor this", "of-env-file", "of-env", "in-secret-file"} {
		if !slices.Contains(known, want) {
			t.Errorf("%q is not known: %q", want, known)
		}
	}
	for _, plain := range []string{"debug", "production-one", "u", "db"} {
		if slices.Contains(known, plain) {
			t.Errorf("%q is taken for a secret: %q", plain, known)
		}
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

// TestOnlyWhatLooksLikeASecretIsTakenForOne checks that the guess by a variable's name does not hide counts, paths and plain words.
func TestOnlyWhatLooksLikeASecretIsTakenForOne(t *testing.T) {
	for variable, want := range map[string]string{
		"KEY_COUNT=1000":                                            "",
		"KEY_COUNT=10000000":                                        "",
		"PWD=/home/ada lovelace/reports-2024":                       "",
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
		// The password of a DSN is found with every name of the variable and with every driver.
		"STORE=redis://u:tre%40sure@db/0":              "tre%40sure tre@sure",
		"STORE=redis://u:50%off/tre@sure@db/0":         "50%off/tre@sure 50%off",
		"STORE=postgres://u:treas@ure-chest@db/x":      "treas@ure-chest ure-chest",
		"STORE=postgres://u:a@treasure/chest-1@db/x":   "a@treasure/chest-1 treasure chest-1",
		"STORE=me:chest:treasure@tcp(db:3306)/x":       "chest:treasure treasure",
		"STORE=redis://db:6379/x@treasure":             "",
		"STORE=redis://db/0?password=tre%40sure&db=1":  "tre%40sure&db=1 tre%40sure tre@sure",
		"STORE=me:tre@sure:/chest@tcp(db:3306)/x":      "tre@sure:/chest",
		"STORE=me:treasure@unix(/run/my.sock)/x":       "treasure",
		"STORE=me:treasure@/x":                         "treasure",
		"STORE=me:abc@/x":                              "",
		"STORE=git@example.com:treasure/chest":         "",
		"STORE=host=db password=treasure user=me":      "treasure",
		"STORE=password = 'tre\\'sure chest' user=me":  `tre\'sure chest tre'sure chest`,
		"STORE=host=db password=tre\\ sure user=me":    `tre\ sure tre sure`,
		"STORE=Server=db;Uid=me;Pwd=treasure;Port=1":   "treasure;Port=1 treasure",
		"STORE=host=db sslpassword=treasure-of-key":    "treasure-of-key",
		"STORE=host=db passfile=/run/secrets/pgpass-1": "",
	} {
		name, value, _ := strings.Cut(variable, "=")
		if got := strings.Join(InVariable(name, value), " "); got != want {
			t.Errorf("of %s %q is secret, want %q", variable, got, want)
		}
	}
}
