package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
)

// every calls f with all commands, including hidden commands.
func every(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		every(sub, f)
	}
}

func TestEveryCommandHasExamplesThatAreUnderstood(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder // words as a shell splits them: one line for each word, and one line for each end
	script.WriteString("baton() { printf '%s\\n' \"$@\"; echo ---; }\nsystemctl() { :; }\njq() { cat; }\n")
	for _, cmd := range documented(newRootCommand(cmdline.Env{})) {
		if cmd.Runnable() && cmd.Example == "" {
			t.Errorf("%s: no example", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Example, "baton") {
			t.Errorf("%s: an example of what?\n%s", cmd.CommandPath(), cmd.Example)
		}
		script.WriteString(strings.NewReplacer("ExecStopPost=/usr/bin/baton", "baton", "> ", "; : ", "30 2 * * *  root", "", " || ", " ; : ", "<(baton completion bash)", "/dev/null; baton completion bash").Replace(cmd.Example) + "\n")
	}
	run := exec.Command(shell, "-c", script.String())
	run.Dir = t.TempDir()
	words, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, script.String())
	}
	seen := 0
	for example := range strings.SplitSeq(strings.TrimSuffix(string(words), "---\n"), "---\n") {
		args := strings.Split(strings.TrimSuffix(example, "\n"), "\n")
		seen++
		root := newRootCommand(cmdline.Env{})
		root.InitDefaultHelpCmd()
		cmd, rest, err := root.Find(args)
		if cmd != nil && cmd.Name() == "help" {
			continue
		}
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateFlagGroups()
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || !cmd.HasParent() {
			t.Errorf("baton %q: %v", args, err)
		}
	}
	if seen < 60 {
		t.Errorf("%d examples only", seen)
	}
}

// TestFlagsMeanTheSameEverywhere checks that a flag has the same name, letter and meaning in all commands.
func TestFlagsMeanTheSameEverywhere(t *testing.T) {
	type meaning struct{ letter, kind, of string }
	long, short := map[string]meaning{}, map[string]string{}
	every(newRootCommand(cmdline.Env{}), func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			is := meaning{f.Shorthand, f.Value.Type(), cmd.CommandPath()}
			was, ok := long[f.Name]
			if ok && (was.letter != is.letter || was.kind != is.kind) && !f.Hidden {
				t.Errorf("--%s: %v and %v", f.Name, was, is)
			}
			if !f.Hidden {
				long[f.Name] = is
			}
			if f.Shorthand == "" || cmd.Name() == "lock" { // the letters of baton lock are those of flock(1)
				return
			}
			if was, ok := short[f.Shorthand]; ok && was != f.Name {
				t.Errorf("-%s is --%s, and --%s of %s", f.Shorthand, was, f.Name, cmd.CommandPath())
			}
			short[f.Shorthand] = f.Name
		})
	})
}

func TestHelpIsThereForEveryCommandAndFits(t *testing.T) {
	c := newCLI(t)
	for _, cmd := range documented(newRootCommand(cmdline.Env{})) {
		args := append(strings.Fields(cmd.CommandPath()), "-h")[1:]
		got := c.run(args...)
		if got.code != cmdline.ExitOK || got.stderr != "" || !strings.Contains(got.stdout, "Usage:\n  "+cmd.CommandPath()) || !strings.Contains(got.stdout, "Examples:\n") {
			t.Errorf("%s -h: %+v", cmd.CommandPath(), got)
		}
		for line := range strings.Lines(got.stdout) {
			if n := show.TextWidth(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s: a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	}
}

func TestHelpOfTheRootIsInGroups(t *testing.T) {
	root := newRootCommand(cmdline.Env{})
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.GroupID == "" && cmd.Name() != "help" {
			t.Errorf("%s is in no group", cmd.Name())
		}
	}
	got := newCLI(t).run("help").stdout
	if !regexp.MustCompile(`(?s)Day by day:\n.*  status .*Jobs and their data:\n.*  job .*When something is wrong:\n.*  explain .*To set it up:\n.*  run `).MatchString(got) || strings.Contains(got, "Additional Commands") {
		t.Errorf("help:\n%s", got)
	}
}
