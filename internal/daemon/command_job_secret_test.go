package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/config"
)

// What a command prints of its own environment has no secret in it, wherever that stood.
func TestSecretsOfTheEnvironmentAreTakenOutOfTheOutput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	j, o, _ := trial("env; printf 'from-the'; sleep 0.05; echo '-secret-file, file-password'")
	o.Environ = append(o.Environ, "REDIS_PASSWORD=of-the-daemon", "PLAIN=plain-text", "STORE_AT=redis://me:p%40ss-word@db/0")
	j.EnvFile = write("env", "TOKEN=file-token\nANY='nobody-sees-this'\nLEVEL=debug\nREPLACED=by-the-configuration\n")
	j.Env = map[string]string{"API_KEY": "0f-the-configuration", "REPLACED": "by-another", "STAGE": "production-one"}
	j.Secrets = map[string]string{"ONE": write("one", "from-the-secret-file\n"), "TWO": write("two", "ok\n")}
	result, err := newCommandJob(j, o).run(t.Context(), oneRun)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"of-the-daemon", "p%40ss-word", "file-token", "nobody-sees-this", "0f-the-configuration", "from-the-secret-file", "TWO=ok"} {
		if strings.Contains(result.Output, secret) {
			t.Errorf("it has %q:\n%s", secret, result.Output)
		}
	}
	for _, plain := range []string{"PLAIN=plain-text", "LEVEL=debug", "STAGE=production-one", "TOKEN=***", "STORE_AT=redis://me:***@db/0", "file-password"} {
		if !strings.Contains(result.Output, plain) {
			t.Errorf("it lacks %q:\n%s", plain, result.Output)
		}
	}
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
		if got := strings.Join(secretsOf(name, value), " "); got != want {
			t.Errorf("of %s %q is secret, want %q", variable, got, want)
		}
	}
	j, o, _ := trial("echo 1000 of 1000 in /srv/report/out")
	j.Env = map[string]string{"KEY_COUNT": "1000", "OUT_URL": "/srv/report"}
	o.Known = func() []string {
		c := config.Default()
		c.Jobs = []config.Job{j}
		return knownSecrets(c)
	}
	result, err := newCommandJob(j, o).run(t.Context(), oneRun)
	if want := "1000 of 1000 in /srv/report/out\n"; err != nil || result.Output != want {
		t.Errorf("%q, %v; want %q", result.Output, err, want)
	}
}
