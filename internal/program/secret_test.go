package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/secret"
)

// If a command prints its own environment, the stored output contains no secret, wherever the secret was configured.
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
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
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

// A value that does not look like a secret is printed.
func TestCountsAndPathsStayReadable(t *testing.T) {
	j, o, _ := trial("echo 1000 of 1000 in /srv/report/out")
	j.Env = map[string]string{"KEY_COUNT": "1000", "OUT_URL": "/srv/report"}
	o.Known = func() []string {
		c := config.Default()
		c.Jobs = []config.Job{j}
		return secret.Known(c)
	}
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if want := "1000 of 1000 in /srv/report/out\n"; err != nil || result.Output != want {
		t.Errorf("%q, %v; want %q", result.Output, err, want)
	}
}
