package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"baton/internal/testsupport/cluster"
)

// shells are the shells that baton has completions for. start is the command that starts the shell without the user's settings, and load is
// the text to type to load the completion, as in the help text. The shell function note writes its arguments to a file, so that the test
// can read the completed line.
func shells() map[string]struct{ start, load []string } {
	return map[string]struct{ start, load []string }{
		"bash": {
			[]string{"bash", "--norc", "--noprofile", "-i"},
			[]string{"source /usr/share/bash-completion/bash_completion", "source <(baton completion bash)", `note() { echo "$*" >> typed; }`},
		},
		"zsh": {
			[]string{"zsh", "-f", "-i"},
			// The completions of other programs are not loaded, because looking through a thousand of them takes a second.
			[]string{
				`baton completion zsh > _baton; all=($fpath); fpath=("$PWD" ${(M)all:#*/(functions|Completion|Completion/Base|Misc)})`,
				"autoload -U compinit; compinit -u -D", "fpath+=($all); autoload -U _files _path_files _list_files", `note() { echo "$*" >> typed; }`,
			},
		},
		"fish": {
			[]string{"fish", "--no-config", "-i"},
			[]string{"baton completion fish | source", "function note; echo $argv >> typed; end"},
		},
	}
}

// TestShellsCompleteCommandsFlagsAndNames checks that a user who types the beginning of a word and presses Tab gets the whole word.
func TestShellsCompleteCommandsFlagsAndNames(t *testing.T) {
	program := cluster.Build(t)
	c, server := newCLI(t), useRedis(t)
	c.file("baton.yaml", fmt.Sprintf("redis: {url: %q}\nhttp: {listen: \"off\"}\njobs:\n  - {name: report, schedule: \"@yearly\", command: [/bin/true]}\n", server.URL()))
	c.env["BATON_CONFIG"] = "baton.yaml"
	c.daemon("--node-id", "db-one")
	c.until("db-one\n", "leader")
	c.until("db-one", "status")
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(root, name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			p := prompt{t: t, typed: filepath.Join(dir, "typed")}
			p.start(dir, shell.start, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir, "TERM=xterm", "BATON_CONFIG="+filepath.Join(root, "baton.yaml"))
			for _, line := range shell.load {
				p.keys(line + "\r")
			}
			for typed, want := range map[string]string{
				"baton expl":                 "baton explain",
				"baton job hist":             "baton job history",
				"baton job pause --reas":     "baton job pause --reason",
				"baton job run rep":          "baton job run report",
				"baton stepdown --to db":     "baton stepdown --to db-one",
				"baton status --color alw":   "baton status --color always",
				"baton leader --config bato": "baton leader --config baton.yaml",
			} {
				p.completes(typed, want)
			}
		})
	}
}

// prompt is a shell in a terminal.
type prompt struct {
	t      *testing.T
	typed  string // the file that note writes
	screen *tty
}

func (p *prompt) start(dir string, argv []string, env ...string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "baton.yaml"), nil, 0o600); err != nil { // a file that can be completed
		p.t.Fatal(err)
	}
	screen, end := terminal(p.t, 100, 40)
	p.screen = screen
	shell := exec.Command(argv[0], argv[1:]...)
	shell.Dir, shell.Env = dir, env
	shell.Stdin, shell.Stdout, shell.Stderr = end, end, end
	shell.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		p.t.Fatalf("%v; scripts/test-deps installs the shells", err)
	}
	p.t.Cleanup(func() {
		_ = shell.Process.Kill() // the shell may have ended
		_ = shell.Wait()
	})
}

func (p *prompt) keys(text string) {
	p.t.Helper()
	if _, err := p.screen.master.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// completes types the beginning of a line and Tab, and makes note write the completed line to its file. It presses Tab again if needed,
// because on a busy machine a server may not answer in time.
func (p *prompt) completes(begun, want string) {
	p.t.Helper()
	const lineStart = "\x01"
	got := ""
	for deadline := time.Now().Add(time.Minute); got != want && time.Now().Before(deadline); {
		before := p.noted()
		p.keys(begun + "\t" + lineStart + "note \r")
		for p.noted() == before && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		got = strings.TrimSpace(strings.TrimPrefix(p.noted(), before))
	}
	if got != want {
		p.t.Fatalf("%q and Tab make %q, want %q\n%q", begun, got, want, p.screen)
	}
}

func (p *prompt) noted() string {
	text, _ := os.ReadFile(p.typed) // the file does not exist at first
	return string(text)
}
