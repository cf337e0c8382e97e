package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"baton/internal/config"
)

func fileOf(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(all map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := all[name]; return v, ok }
}

func TestFilesThatBatonCouldNotUseAreProblemsOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	good := fileOf(t, dir, "good", "0123456789abcdef\n", 0o600)
	lines := fileOf(t, dir, "lines", "planted\nplanted\n", 0o600)
	hook := func(url, token string) *config.Webhook { return &config.Webhook{URLFile: url, TokenFile: token} }
	whole := config.Config{
		Redis:     config.Redis{PasswordFile: good, Sentinel: &config.Sentinel{PasswordFile: good}},
		HTTP:      config.HTTP{TokenFile: good},
		Databases: map[string]config.Database{"main": {DSNFile: good}},
		Notify:    []config.Notify{{Webhook: hook(good, good)}},
		Jobs:      []config.Job{{DeadMansSwitch: hook(good, ""), EnvFile: fileOf(t, dir, "env", "A=b\n", 0o600), Secrets: map[string]string{"S": good}}},
	}
	if wrong, doubts := CheckFiles(whole, Options{}); len(wrong)+len(doubts) != 0 {
		t.Errorf("all is well: %v %v", wrong, doubts)
	}
	broken := whole
	broken.Redis = config.Redis{URL: "rediss://h", PasswordFile: gone, Sentinel: &config.Sentinel{PasswordFile: lines}}
	broken.HTTP = config.HTTP{TokenFile: fileOf(t, dir, "short", "planted\n", 0o600)}
	broken.Databases = map[string]config.Database{"main": {DSNFile: gone}}
	broken.Notify = []config.Notify{{Webhook: hook(gone, gone)}}
	broken.Jobs = []config.Job{{DeadMansSwitch: hook(gone, ""), EnvFile: lines, Secrets: map[string]string{"S": gone, "T": good}}}
	wrong, doubts := CheckFiles(broken, Options{})
	missing := gone + " does not exist; create it, or correct the path"
	want := []string{
		"databases.main.dsn_file: " + missing,
		"http.token_file: " + dir + "/short: the token has 7 characters",
		"jobs[0].dead_mans_switch.url_file: " + missing,
		"jobs[0].env_file: env_file " + lines + ", line 1: write NAME=VALUE",
		"jobs[0].secrets.S: " + missing,
		"notify[0].webhook.token_file: " + missing,
		"notify[0].webhook.url_file: " + missing,
		"redis.password_file: " + missing,
		"redis.sentinel.password_file: file " + lines + " is not one line of text",
	}
	for i, w := range want {
		if i >= len(wrong) || !strings.HasPrefix(wrong[i].String(), w) {
			t.Errorf("no %q in:\n%v", w, wrong)
		}
	}
	if len(wrong) != len(want) || len(doubts) != 0 || strings.Contains(wrong.Error(), "planted") {
		t.Errorf("%v\n%v", wrong, doubts)
	}
}

func TestCertificatesThatCannotBeUsedAreProblemsOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	junk := fileOf(t, dir, "junk", "x\n", 0o600)
	c := config.Config{Redis: config.Redis{URL: "rediss://h", TLS: &config.TLS{CAFile: junk}}, HTTP: config.HTTP{TLS: &config.ServerTLS{CertFile: junk, KeyFile: junk}}}
	wrong, _ := CheckFiles(c, Options{})
	if text := wrong.Error(); len(wrong) != 2 || !strings.HasPrefix(text, "http.tls: cert_file "+junk) || !strings.Contains(text, "\nredis.tls.ca_file: "+junk+" has no certificate") {
		t.Errorf("%v", wrong)
	}
	c.HTTP.TLS.KeyFile = filepath.Join(dir, "gone")
	if wrong, _ := CheckFiles(c, Options{}); len(wrong) != 1 || wrong[0].Path != "http.tls.key_file" {
		t.Errorf("what is missing is told first: %v", wrong)
	}
}

// withoutRights runs do without root's rights: for the file system, the thread then belongs to another user.
func withoutRights(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
	}
	do()
}

func TestAFileThatOnlyOthersMayReadIsADoubtAndForTheDaemonsUserAProblem(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil { // otherwise the other user cannot reach the file
			t.Fatal(err)
		}
	}
	path := fileOf(t, dir, "dsn", "planted\n", 0o200)
	inside := filepath.Join(dir, "closed")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	hidden := fileOf(t, inside, "password", "planted\n", 0o600)
	if err := os.Chmod(inside, 0o200); err != nil {
		t.Fatal(err)
	}
	c := config.Config{Redis: config.Redis{PasswordFile: hidden}, Databases: map[string]config.Database{"main": {DSNFile: path}}}
	for _, tc := range []struct {
		state  string // the owner of this directory is the daemon's user
		wrongs int
		want   string
	}{
		{"/nowhere", 0, "check it as the daemon's user: sudo -u baton baton config check"},
		{dir, 2, "databases.main.dsn_file: the daemon's user, " + userName(fmt.Sprint(os.Geteuid())) + ", may not read " + path + " ("},
	} {
		withoutRights(t, func() {
			wrong, doubts := CheckFiles(c, Options{Getenv: environment(map[string]string{"STATE_DIRECTORY": tc.state})})
			told := append(wrong, doubts...).Error()
			if len(wrong) != tc.wrongs || len(doubts) != 2-tc.wrongs || !strings.Contains(told, tc.want) {
				t.Errorf("%s: %d are wrong\n%s", tc.state, len(wrong), told)
			}
			if !strings.Contains(told, path+" (") || !strings.Contains(told, ", mode 0200)") || !strings.Contains(told, hidden+" ("+inside+" is ") {
				t.Errorf("it does not say what is in the way:\n%s", told)
			}
		})
	}
}

func TestCredentialsOfAUnitThatIsDownAreADoubt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "baton.service")
	c := config.Config{Redis: config.Redis{PasswordFile: dir + "/redis-password"}}
	o := Options{Getenv: environment(map[string]string{"CREDENTIALS_DIRECTORY": dir})}
	if wrong, doubts := CheckFiles(c, o); len(wrong) != 0 || len(doubts) != 1 || !strings.Contains(doubts[0].Message, "LoadCredential=") {
		t.Errorf("%v, %v", wrong, doubts)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if wrong, doubts := CheckFiles(c, o); len(wrong) != 1 || len(doubts) != 0 {
		t.Errorf("the unit runs, and has no such credential: %v, %v", wrong, doubts)
	}
}
