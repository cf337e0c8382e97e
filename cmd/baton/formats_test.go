package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show/showtest"
	"baton/internal/testsupport"
)

// TestEveryCommandPrintsTheSameInJSONAndInYAML checks that the YAML of every command that prints data has the same content as the JSON.
func TestEveryCommandPrintsTheSameInJSONAndInYAML(t *testing.T) {
	c, _, _ := nodeCLI(t)
	id := first(t, `(?m)^([0-9a-f]{12})  `, c.run("dead", "list").stdout)
	examples := map[string]string{
		"status": "status", "leader": "leader", "who": "who", "explain": "explain db1", "doctor": "doctor", "version": "version", "lock": "lock --list", "stepdown": "stepdown --no-wait",
		"pause": "pause", "resume": "resume", "drill": "", "demo": "", "reload": "reload", "release": "", "notify test": "", "config check": "config check", "config show": "config show",
		"job list": "job list", "job show": "job show views", "job next": "job next views", "job history": "job history report", "job run": "job run report", "job cancel": "", "job pause": "job pause views",
		"job resume": "job resume views", "job preview": "job preview views", "job accept": "", "job verify": "", "job backfill": "",
		"dead list": "dead list", "dead show": "dead show " + id, "dead replay": "dead replay " + id, "dead drop": "dead drop " + id + " --yes", "stage list": "stage list", "stage drop": "", "rows list": "rows list", "rows show": "", "rows undelete": "", "fence list": "fence list", "fence reset": "fence reset",
	}
	// These commands change the state that they print, so the test checks only that their document is YAML.
	orders := []string{"job run", "job pause", "job resume", "dead replay", "dead drop", "pause", "resume", "stepdown"}
	every(newRootCommand(cmdline.Env{}), func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "baton ")
		if f := cmd.Flags().Lookup("output"); f == nil {
			return
		} else if _, ok := examples[name]; !ok {
			t.Errorf("%s prints data, and is not tried", name)
		}
		if example := examples[name]; example != "" && !slices.Contains(orders, name) {
			asJSON, asYAML := printed(t, c, strings.Fields(example))
			showtest.SameInYAML(t, name, asJSON, asYAML)
		}
	})
	for _, name := range orders {
		if got := c.run(append(strings.Fields(examples[name]), "-o", "yaml")...); !strings.HasPrefix(got.stdout, "---\n") {
			t.Errorf("%s -o yaml: %+v", name, got)
		}
	}
}

// printed returns what a command prints as JSON and as YAML. The jobs of the node run meanwhile, so printed repeats the commands until the
// JSON is the same before and after the YAML.
func printed(t *testing.T, c *cli, args []string) (asJSON, asYAML string) {
	t.Helper()
	run := func(format string) string { return unmoving(c.run(append(args, "-o", format)...).stdout) }
	before := run("json")
	testsupport.Await(t, "a moment in which "+strings.Join(args, " ")+" prints the same twice", func() bool {
		asJSON = before
		asYAML, before = run("yaml"), run("json")
		return asJSON == before
	})
	return asJSON, asYAML
}

// unmoving removes the values that change from one call to the next.
func unmoving(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		for _, name := range []string{"now", "since", "lease_left_seconds", "last_seen_seconds_ago", "age_seconds",
			"lag_seconds", "clock_offset_seconds", "lease_left", "what", "sent"} {
			head, _, ok := strings.Cut(line, name+`": `)
			if ok && strings.HasSuffix(head, `"`) {
				comma := ""
				if strings.HasSuffix(line, ",\n") {
					comma = ","
				}
				lines[i] = head + name + `": 0` + comma + "\n"
			}
			if head, _, ok := strings.Cut(line, name+": "); ok && strings.Trim(head, " -") == "" {
				lines[i] = head + name + ": 0\n"
			}
		}
	}
	return strings.Join(lines, "")
}
