package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
	"baton/internal/trace"
)

func TestCommandLineThatIsNotUnderstoodIsUsage(t *testing.T) {
	c := newCLI(t)
	for args, want := range map[string]string{
		"xyz":                                "baton: unknown command \"xyz\" for \"baton\"\nsee baton --help\n",
		"versio":                             "baton: unknown command \"versio\" for \"baton\"\n\nDid you mean this?\n\tversion\n\nsee baton --help\n",
		"version x":                          "baton: version takes no arguments, got \"x\"\nsee baton version --help\n",
		"version --nope":                     "baton: unknown flag: --nope\nsee baton version --help\n",
		"version --outptu json":              "baton: unknown flag: --outptu\n\nDid you mean this?\n\t--output\n\nsee baton version --help\n",
		"version --color maybe":              "baton: invalid argument \"maybe\" for --color: must be auto, always or never\nsee baton version --help\n",
		"job":                                "baton: baton job needs list, show, next, run, logs, history, cancel, pause, resume, preview, accept, verify or backfill\nsee baton job --help\n",
		"version -o xml":                     "baton: invalid argument \"xml\" for -o, --output: must be table, json or yaml\nsee baton version --help\n",
		"completion":                         "baton: completion needs an argument: bash|zsh|fish\nsee baton completion --help\n",
		"completion tcsh":                    "baton: completion \"tcsh\": write bash, zsh or fish\n",
		"help nosuch":                        "baton: unknown command \"nosuch\" for \"baton\"\nsee baton help --help\n",
		"help job lst":                       "baton: unknown command \"lst\" for \"baton job\"\n\nDid you mean this?\n\tlist\n\nsee baton help --help\n",
		"job verify users -n 3":              "baton: unknown flag: -n\nsee baton job verify --help\n",
		"demo --scene x":                     "baton: --scene \"x\": write sync or capture\n",
		"config":                             "baton: baton config needs check, show, init or schema\nsee baton config --help\n",
		"config chek":                        "baton: unknown command \"chek\" for \"baton config\"\n\nDid you mean this?\n\tcheck\n\nsee baton config --help\n",
		"config check a b":                   "baton: config check takes one argument, got 2: a b\nsee baton config check --help\n",
		"lock --break=":                      "baton: invalid lock request: redis key is empty: give it a name\n",
		"lock -n 0 a -- true":                "baton: -n is 0: a semaphore has 1 slot or more\nsee baton lock --help\n",
		"lock --wait 1s --no-wait a -- true": "baton: --no-wait and --wait: give one of them, not both\nsee baton lock --help\n",
		"config show --ttl":                  "baton: flag needs an argument: --ttl\nsee baton config show --help\n",
		"config show --ttl=x":                "baton: --ttl: election.ttl: bad duration \"x\": write a number and a unit, for example 500ms, 10s or 1m30s\n",
	} {
		c.want(cmdline.ExitUsage, "", want, strings.Fields(args)...)
	}
}

func TestTheVersionIsToldByCommandAndFlag(t *testing.T) {
	c := newCLI(t)
	c.want(cmdline.ExitOK, thisBuild().String()+"\n", "", "version")
	c.want(cmdline.ExitOK, thisBuild().String()+"\n", "", "--version")
}

func TestHelpIsOnStandardOutput(t *testing.T) {
	c := newCLI(t)
	for args, want := range map[string]string{
		"":                     "config      Check, show or write the configuration",
		"--help":               "baton exit-codes  What the exit codes mean",
		"help exit-codes":      "  2  wrong arguments, or a configuration that cannot be used\n",
		"help environment":     "  BATON_LOCK_KEY             --lock-key             election.lock_key\n",
		"config show --help":   "--poll-interval duration",
		"help config check":    "[$BATON_HTTP]",
		"completion --help":    "source <(baton completion bash)",
		"__complete completio": "completion\t",
	} {
		got := c.run(strings.Fields(args)...)
		if got.code != cmdline.ExitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("baton %s: %+v", args, got)
		}
	}
}

func TestTheVariablesOfTracesAreInTheHelp(t *testing.T) {
	help := newCLI(t).run("help", "environment").stdout
	for _, v := range trace.Variables() {
		if !strings.Contains(help, "\n  "+v.Name+" ") {
			t.Errorf("%s is missing", v.Name)
		}
	}
}

func TestErrorsHaveTheirExitCodeAndAreSaidOnce(t *testing.T) {
	problems := config.Problems{{Source: "a", Line: 1, Column: 2, Message: "x"}, {Message: "y"}}
	for _, tc := range []struct {
		err    error
		code   int
		stderr string
	}{
		{nil, cmdline.ExitOK, ""},
		{errors.New("no route"), cmdline.ExitFailure, "baton: no route\n"},
		{cmdline.UsageError(errors.New("which?")), cmdline.ExitUsage, "baton: which?\n"},
		{fmt.Errorf("leader: %w", cmdline.WithCode(cmdline.ExitNoLeader, errors.New("no node leads"))), cmdline.ExitNoLeader, "baton: leader: no node leads\n"},
		{cmdline.WithCode(cmdline.ExitNoLeader, nil), cmdline.ExitNoLeader, ""},
		{cmdline.UsageError(problems), cmdline.ExitUsage, "baton: 2 problems in the configuration:\na:1:2: x\ny\n"},
		{cmdline.UsageError(problems[:1]), cmdline.ExitUsage, "baton: a:1:2: x\n"},
	} {
		var stderr bytes.Buffer
		root := &cobra.Command{
			Use: "baton", SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return tc.err },
		}
		root.SetArgs([]string{})
		if code := execute(t.Context(), root, &stderr); code != tc.code || stderr.String() != tc.stderr {
			t.Errorf("%v: %d %q, want %d %q", tc.err, code, stderr.String(), tc.code, tc.stderr)
		}
	}
}

func TestVersionSaysWhatTheBinaryIs(t *testing.T) {
	c := newCLI(t)
	got := c.run("version")
	if got.code != cmdline.ExitOK || !strings.HasPrefix(got.stdout, "baton dev (commit ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	var v map[string]string
	if err := json.Unmarshal([]byte(c.run("version", "-o", "json").stdout), &v); err != nil {
		t.Fatal(err)
	}
	if v["version"] != "dev" || v["commit"] == "" || v["go"] != runtime.Version() || v["platform"] != runtime.GOOS+"/"+runtime.GOARCH || len(v) != 4 {
		t.Errorf("%v", v)
	}
}

func TestCompletionScriptsAreOfTheirShell(t *testing.T) {
	c := newCLI(t)
	for shell, want := range map[string]string{"bash": "__start_baton", "zsh": "#compdef baton", "fish": "complete -c baton"} {
		if got := c.run("completion", shell); got.code != cmdline.ExitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %d\n%.200s", shell, got.code, got.stdout)
		}
	}
}

func TestEveryCommandHasAShortHelpAndNoSurprise(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Short == "" || strings.HasSuffix(sub.Short, ".") {
				t.Errorf("%s: short help %q", sub.CommandPath(), sub.Short)
			}
			if sub.Runnable() && sub.Args == nil && sub.Name() != "help" {
				t.Errorf("%s: takes any arguments and ignores them", sub.CommandPath())
			}
			if sub.PersistentPreRun != nil || sub.PersistentPreRunE != nil {
				t.Errorf("%s: its PersistentPreRun hides the root's, by which run tells usage errors", sub.CommandPath())
			}
			walk(sub)
		}
	}
	walk(newRootCommand(cmdline.Env{}))
}

func TestWhatPeopleTypeIsUnderstoodOrExplained(t *testing.T) {
	c := newCLI(t)
	for args, want := range map[string]string{
		"stepdown db2":                  `(?s)only the leader can step down; to make db2 the next leader: baton stepdown --to db2`,
		"job history x -n many":         `invalid argument "many" for -n, --number: must be a whole number`,
		"job pause x --for ever":        `invalid argument "ever" for --for: must be a duration such as 30s`,
		"status --watch=perhaps":        `invalid argument "perhaps" for -w, --watch: must be true or false`,
		"dead show":                     `dead show needs an argument: ID`,
		"job next a b":                  `takes one argument, got 2: a b`,
		"ps --config /nowhere":          `/nowhere`,
		"ls --config /nowhere":          `/nowhere`,
		"jobs ls --config /nowhere":     `/nowhere`,
		"dead ls --config /nowhere":     `/nowhere`,
		"fence ls --config /nowhere":    `/nowhere`,
		"stage ls --config /nowhere":    `/nowhere`,
		"stage rm x --config /nowhere":  `/nowhere`,
		"dead rm 12 --config /nowhere":  `/nowhere`,
		"job preview --config /nowhere": `say which job; baton job list shows them`,
	} {
		got := c.run(strings.Fields(args)...)
		c.matches(got, cmdline.ExitUsage, `^$`, want)
		if strings.Contains(got.stderr, "strconv") || strings.Contains(got.stderr, "arg(s)") {
			t.Errorf("baton %s: %s", args, got.stderr)
		}
	}
}
