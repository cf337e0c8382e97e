package docs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/internal/testsupport/walk"
)

// Commands that are not run here, and why. Everything else is run, or is an error.
func notRun() map[string]string {
	const (
		host   = "changes a host: test/hosts does it on hosts with systemd"
		filter = "reads what a command before it prints"
		other  = "a program of somebody else's, that a page names as an example"
		lines  = "a word of the shell"
		net    = "asks a server that is an example"
	)
	return map[string]string{
		"systemctl": host, "apt-get": host, "apt": host, "dnf": host, "useradd": host, "usermod": host, "install": host, "chown": host, "dpkg": host,
		"chmod": host, "tee": host, "journalctl": host, "rpm": host, "ufw": host, "reboot": host, "systemd-run": host, "mkdir": host, "cp": host,
		"systemd-analyze": host, "crontab": host, "groups": host, "rm": host, "mv": host, "gpasswd": host, "umask": host, "sudoedit": host, "loginctl": host,
		"jq": filter, "grep": filter, "head": filter, "less": filter, "awk": filter, "sort": filter, "tail": filter, "wc": filter, "sed": filter, "xargs": filter,
		"ssh": net, "scp": net, "curl": net, "psql": net, "pg_dump": net, "pg_restore": net, "mysql": net, "openssl": net, "redis-server": net, "promtool": net, "date": net, "timedatectl": net,
		"ffmpeg": other, "java": other, "python3": other, "flock": other, "git": other, "cd": lines, "echo": lines, "export": lines, "for": lines, "do": lines, "done": lines,
		"exit": lines, "if": lines, "then": lines, "fi": lines, "while": lines, "sleep": lines, "true": lines, "source": lines, "docker": net, "kubectl": net, "skopeo": net, "sudo": host, "man": other, "cat": lines, "ls": lines, "printf": lines,
	}
}

// Commands of baton whose flags and names are parsed, and that are not run.
func parsedOnly() map[string]string {
	return map[string]string{
		`^baton run\b`:                 "a daemon does not end; every test of this package has two",
		`^baton demo\b`:                "takes half a minute; TestDemo runs it",
		`^baton lock .*(--|-c) `:       "runs programs that are not here; the tests of baton lock run real ones",
		`^baton lock\b.*\\$`:           "the same",
		`--rounds|--interval`:          "takes long",
		`--watch|-w\b|--follow|-f\b`:   "goes on until it is ended, or shows a terminal what the same command shows without it",
		`release --crashed`:            "ExecStopPost= of a unit: kills every process of its control group",
		`--server|BATON_SERVER|https:`: "asks a host that is an example; the tests of the API do it",
		`--force|<\(|> `:               "writes to a place of the shell's or the user's",
		`reports\.yaml`:                "names the configuration of an instance that is not here",
		`-w?e? *…|ID\b|NAME\b|JOB\b`:   "has a placeholder",
	}
}

// Commands that fail here as they should: there is no such thing as they name.
func failing() map[string]string {
	return map[string]string{
		`3f2a9c41d07b`:            "there is no such dead letter",
		`rows (show|undelete)`:    "no deleted row is kept",
		`0b9b3f6e|0b9c6f0e`:       "nobody holds the lock under that owner",
		`lock --break`:            "nobody holds that lock",
		`notify test`:             "the configuration has no notify",
		`stage drop`:              "nothing is left that could be dropped",
		`dead replay --job|--all`: "there is nothing to replay",
		`--database`:              "there is no such database",
		`--socket`:                "there is no such socket",
		`3f0c…|0d6c…|--run `:      "there is no such run",
		`job cancel`:              "there is nothing to cancel",
		`job accept`:              "nothing waits to be accepted",
		`job run`:                 "a run goes on, or somebody has asked for one already",
		`config init`:             "the file is there",
		`--lock-key`:              "there is no such lock",
		`release`:                 "nobody holds the lock under that owner",
		`stepdown|drill|pause|resume|explain|leader`: "the other node may just be taking over",
	}
}

func match(table map[string]string, line string) (reason string) {
	for pattern, why := range table {
		if regexp.MustCompile(pattern).MatchString(line) {
			return why
		}
	}
	return ""
}

var heredoc = regexp.MustCompile(`<<-?'?(\w+)'?`)

// checkShell runs the commands of a block, or says why it does not.
func checkShell(t *testing.T, in *installation, b walk.Block) {
	t.Helper()
	text := strings.ReplaceAll(b.Text, "\\\n", " ")
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := heredoc.FindStringSubmatch(line); m != nil {
			var inner []string
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != m[1]; i++ {
				inner = append(inner, lines[i])
			}
			if strings.Contains(line, "baton.yaml") && !strings.Contains(line, "-a ") {
				checkYAML(t, b.String(), strings.Join(inner, "\n")+"\n")
			}
		}
		if m := cronLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && strings.ContainsAny(line[:1], "0123456789*@") {
			checkCrontab(t, in, walk.Block{Page: b.Page, Line: b.Line, Text: line})
			continue
		}
		line = strings.TrimPrefix(line, "ExecStopPost=")
		for _, command := range commands(line) {
			in.command(t, fmt.Sprintf("%s, %q", b, command), command)
		}
	}
}

// commands are the simple commands of a line: what stands between |, && and so on.
func commands(line string) []string {
	var out []string
	var quote rune
	var word strings.Builder
	end := func() {
		if s := strings.TrimSpace(word.String()); s != "" {
			out = append(out, s)
		}
		word.Reset()
	}
	previous := ' '
	for _, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (previous == ' ' || previous == '\t'):
			end()
			return out
		case r == '|' || r == ';' || r == '&' && previous != '>':
			end()
			previous = r
			continue
		}
		word.WriteRune(r)
		previous = r
	}
	end()
	return out
}

var (
	sudo       = regexp.MustCompile(`^sudo (-u \w+ )?`)
	assignment = regexp.MustCompile(`^([A-Z_]+=\S* )+`)
)

func (in *installation) command(t *testing.T, where, command string) {
	t.Helper()
	command = assignment.ReplaceAllString(sudo.ReplaceAllString(strings.TrimPrefix(command, "$ "), ""), "")
	name, _, _ := strings.Cut(command, " ")
	switch name {
	case "baton", "bin/baton", "/usr/bin/baton":
		in.batonCommand(t, where, "baton"+strings.TrimPrefix(command, name))
		return
	case "redis-cli":
		out, err := in.bash(regexp.MustCompile(` -[hpa] \S+`).ReplaceAllString(command, ""))
		in.ran["redis-cli"]++
		if err != nil || strings.Contains(out, "ERR ") {
			t.Errorf("%s: %v: %s", where, err, out)
		}
		return
	case "curl":
		if !strings.Contains(command, "127.0.0.1:9747") && !strings.Contains(command, "--unix-socket /run/baton/") {
			break
		}
		out, err := in.bash(command)
		in.ran["curl"]++
		if err != nil || strings.Contains(out, `"error":"`) {
			t.Errorf("%s: %v: %s", where, err, out)
		}
		return
	case "go":
		in.ran["go test, looked up"]++
		oneTest(t, where, command)
		return
	case "make":
		if in.again(command) {
			return
		}
		out, err := exec.Command("make", append([]string{"-C", root, "--dry-run"}, words(command)[1:]...)...).CombinedOutput()
		in.ran["make --dry-run"]++
		if err != nil {
			t.Errorf("%s: %v\n%s", where, err, out)
		}
		return
	}
	reason, ok := notRun()[name]
	if !ok {
		t.Errorf("%s: it is not said whether %s is run", where, name)
	}
	in.notRun[reason]++
}

var goTest = regexp.MustCompile(`^go test (?:-race )?-run '\^(Test\w+)\$(?:/[^']*)?' \./([\w/]+)$`)

// oneTest holds the test that a command runs to be where it looks.
func oneTest(t *testing.T, where, command string) {
	t.Helper()
	m := goTest.FindStringSubmatch(command)
	if m == nil {
		t.Errorf("%s: want go test -run '^TestName$' ./package", where)
		return
	}
	files, _ := filepath.Glob(filepath.Join(root, m[2], "*_test.go")) // the pattern is a constant: no error
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nfunc "+m[1]+"(") {
			return
		}
	}
	t.Errorf("%s: there is no %s in %s", where, m[1], m[2])
}

func words(command string) []string {
	return slices.DeleteFunc(strings.Fields(command), func(w string) bool { return strings.HasPrefix(w, "[") })
}

// again reports whether a page has had this command before, to the letter: one that is run
// twice tells no more than once.
func (in *installation) again(command string) bool {
	if in.had[command] {
		in.ran["as before"]++
		return true
	}
	in.had[command] = true
	return false
}

// batonCommand runs a command of baton. It must not take its arguments for wrong.
func (in *installation) batonCommand(t *testing.T, where, command string) {
	t.Helper()
	if in.again(command) {
		return
	}
	if reason := match(parsedOnly(), command); reason != "" {
		in.parse(t, where, command)
		in.notRun["parsed: "+reason]++
		return
	}
	out, err := in.bash(command)
	in.ran["baton"]++
	var exit *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &exit):
		t.Errorf("%s: %v\n%s", where, err, out)
	case exit.ExitCode() == 2 || match(failing(), command) == "":
		t.Errorf("%s: %v\n%s", where, err, out)
	}
	if strings.HasPrefix(command, "baton config init") {
		in.localize(t)
	}
	if strings.HasPrefix(command, "baton pause") {
		_, _ = in.bash("baton resume")
	}
	if strings.Contains(command, "job pause") {
		_, _ = in.bash("baton job resume --all; baton job resume users; baton job resume report")
	}
}

// parse has the command line taken apart, and asks for help instead of doing it.
func (in *installation) parse(t *testing.T, where, command string) {
	t.Helper()
	command, _, _ = strings.Cut(command, " -- ")
	command = strings.TrimSpace(regexp.MustCompile(`(<\(| > |\.\.\.|…|\[).*`).ReplaceAllString(command, ""))
	if in.again(command + " --help") {
		return
	}
	out, err := in.bash(command + " --help")
	sub := "baton " + strings.Join(subcommand(command), " ")
	if err != nil || !strings.Contains(out, "\n  "+sub) {
		t.Errorf("%s: %s: %v\n%s", where, command, err, out)
	}
}

// subcommand is the first word behind baton, which tells the command apart from a help
// of all.
func subcommand(command string) []string {
	for _, word := range strings.Fields(command)[1:] {
		if !strings.HasPrefix(word, "-") {
			return []string{word}
		}
	}
	return nil
}
