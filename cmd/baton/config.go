package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/configs"
	"baton/internal/config"
	"baton/internal/doctor"
	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

func newConfigCommand(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:     "config",
		Short:   "Check, show or write the configuration",
		Example: "  baton config init baton.yaml\n  baton config check baton.yaml\n  baton config show\n  baton config schema",
	}, newConfigCheckCommand(e), newConfigShowCommand(e), newConfigInitCommand(e), newConfigSchemaCommand(e))
}

// checked is the output of `config check -o json`.
type checked struct {
	File      string           `json:"file"`
	OK        bool             `json:"ok"`
	Jobs      int              `json:"jobs"`
	Databases int              `json:"databases"`
	Problems  []config.Problem `json:"problems"`
	// Warnings lists the files that the configuration names and that this user may not read.
	Warnings []config.Problem `json:"warnings"`
	// Schedules says when each job is due. It is empty if the configuration has problems.
	Schedules []operate.Coming `json:"schedules"`
}

// shownSlots is the number of slots that "config check" shows for each job.
const shownSlots = 3

func newConfigCheckCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var textAlone bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the configuration: each problem with its line",
		Long: "Check the configuration, and print each problem with its line. It checks FILE,\n" +
			"or without FILE the file that `baton run` would use, with environment and\n" +
			"flags applied. It connects to no server. It reads the password and certificate\n" +
			"files that the configuration names: a missing file is a problem; a file that\n" +
			"you may not read is a warning, so run the command as the daemon's user.\n" +
			"--no-files checks the text alone. For a good configuration it prints when the\n" +
			"jobs are due, and how daylight saving changes these times within a year.",
		Example: "  baton config check\n  sudo -u baton baton config check\n  baton config check ./baton.yaml\n" +
			"  baton config check --no-files ./baton.yaml\n  baton config check -o json",
		Args: cmdline.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := existingConfig(cmd, e, args)
			if err != nil {
				return cmdline.UsageError(err)
			}
			report, err := check(cmd, e, path, !textAlone)
			problems, ok := errors.AsType[config.Problems](err)
			if report.Problems = append(report.Problems, problems...); err != nil && !ok {
				return err
			}
			if !out.Data() {
				warn(e.Stderr, report.Warnings)
				if err != nil {
					return err
				}
			}
			printed := out.Print(e.Stdout, report, func(w io.Writer) error { return printChecked(w, report) })
			return errors.Join(err, printed)
		},
	}
	cmdline.AddRunFlags(cmd, e)
	cmd.Flags().BoolVar(&textAlone, "no-files", false, "do not read the files that the configuration names")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// check checks a configuration. If the argument files is true, it also checks the files that the configuration names.
func check(cmd *cobra.Command, e cmdline.Env, path string, files bool) (checked, error) {
	report := checked{File: path, Problems: []config.Problem{}, Warnings: []config.Problem{}, Schedules: []operate.Coming{}}
	c, err := cmdline.ReadConfig(cmd, e, path)
	if report.Jobs, report.Databases = len(c.Jobs), len(c.Databases); err != nil {
		return report, err
	}
	wrong := doctor.CheckDatabases(c, files)
	if files {
		found, doubts := doctor.CheckFiles(c, doctor.Options{ConfigFile: path, Unit: doctor.UnitOf(path), Getenv: e.Getenv})
		wrong, report.Warnings = append(found, wrong...), append(report.Warnings, doubts...)
	}
	if len(wrong) > 0 {
		return report, cmdline.UsageError(wrong.Sorted())
	}
	report.OK = true
	report.Schedules, err = direct.NextOfAll(c, time.Now(), shownSlots)
	return report, err
}

// warn writes warnings in the format of errors: each line begins with the place in the configuration.
func warn(w io.Writer, warnings []config.Problem) {
	for _, p := range warnings {
		_ = show.Say(w, "baton: warning: %s\n", p.String()) // there is no other place to report a failed write to stderr
	}
}

func printChecked(out io.Writer, r checked) error {
	jobs, databases := text.Count(r.Jobs, "job"), text.Count(r.Databases, "database")
	if err := show.Say(out, "%s: ok, %s, %s\n", r.File, jobs, databases); err != nil || r.Jobs == 0 {
		return err
	}
	w := show.NewTable(out)
	_ = show.Say(w, "\nJOB\tDUE\tNEXT\tTHEN\tTHEN\n") // Flush returns a write error
	for _, c := range r.Schedules {
		_ = show.Say(w, "%s\t%s", c.Job, c.Words)
		for i := range shownSlots {
			slot := "-" // a line with fewer columns would split the table
			if i < len(c.Next) {
				slot = show.SlotTime(c.Next[i].Slot)
			}
			_ = show.Say(w, "\t%s", slot)
		}
		_ = show.Say(w, "\n")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printShifts(out, r.Schedules)
}

// printShifts prints how daylight saving changes the slots of the jobs. Jobs with the same change share a line, because many jobs are often
// due at the same hour of the night.
func printShifts(out io.Writer, schedules []operate.Coming) error {
	type shift struct {
		at         int64 // sorts the shifts
		slot, note string
	}
	var order []shift
	jobs := map[shift][]string{}
	for _, c := range schedules {
		for _, s := range c.Shifts {
			k := shift{s.Slot.Unix(), show.SlotTime(s.Slot) + " " + c.TimeZone, s.Note}
			if jobs[k] == nil {
				order = append(order, k)
			}
			jobs[k] = append(jobs[k], c.Job)
		}
	}
	slices.SortStableFunc(order, func(a, b shift) int { return cmp.Compare(a.at, b.at) })
	for i, k := range order {
		if i == 0 {
			if err := show.Say(out, "\nWithin a year:\n"); err != nil {
				return err
			}
		}
		names := strings.Join(jobs[k][:min(len(jobs[k]), shownSlots)], ", ")
		if more := len(jobs[k]) - shownSlots; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		if err := show.Say(out, "  %s: %s: %s\n", k.slot, k.note, names); err != nil {
			return err
		}
	}
	return nil
}

func newConfigShowCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:     "show [FILE]",
		Short:   "Print the configuration in effect, without secrets",
		Example: "  baton config show\n  baton config show ./baton.yaml -o json",
		Args:    cmdline.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := cmdline.ConfigPath(cmd, e)
			if err != nil {
				return cmdline.UsageError(err)
			}
			if len(args) == 1 {
				path = args[0]
			}
			c, err := cmdline.ReadConfig(cmd, e, path)
			if err != nil {
				return err
			}
			shown := config.Show(c)
			asJSON, err := yaml.YAMLToJSON(shown)
			if err != nil {
				return fmt.Errorf("print the configuration as JSON: %w", err)
			}
			return out.Print(e.Stdout, json.RawMessage(asJSON), func(w io.Writer) error {
				_, err := w.Write(shown)
				return err
			})
		},
	}
	cmdline.AddRunFlags(cmd, e)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// existingConfig returns the path of the file to check. It returns an error if there is no file.
func existingConfig(cmd *cobra.Command, e cmdline.Env, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	path, err := cmdline.ConfigPath(cmd, e)
	if err == nil && path == "" {
		err = fmt.Errorf("there is no configuration file: name a file, set $%s, or create %s", cmdline.ConfigEnv, cmdline.DefaultConfig)
	}
	return path, err
}

func newConfigInitCommand(e cmdline.Env) *cobra.Command {
	var force bool
	var lockKey string
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an example configuration, to begin with",
		Long: "Write an example configuration, with every key explained, to FILE (default\n" +
			"baton.yaml; - is standard output). An existing file is kept, unless --force is\n" +
			"given. Without --lock-key baton asks for the key on a terminal. Hosts with the\n" +
			"same key in the same Redis are one election: give each installation its own\n" +
			"key.",
		Example: "  baton config init\n  baton config init --lock-key shop /etc/baton/baton.yaml\n  baton config init -",
		Args:    cmdline.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "baton.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			if lockKey == "" && path != "-" {
				var err error
				question := "Lock key, a name for this installation [" + defaultKey + "]: "
				if lockKey, _, err = cmdline.Ask(cmd.Context(), e, question); err != nil {
					return err
				}
			}
			example, err := exampleFor(cmp.Or(lockKey, defaultKey))
			if err != nil {
				return cmdline.UsageError(err)
			}
			if path == "-" {
				_, err := e.Stdout.Write(example)
				return err
			}
			if err := writeExample(path, example, force); err != nil {
				return err
			}
			return show.Say(e.Stdout, "wrote %s with the lock key %s; edit it, then: baton config check %[1]s\n",
				path, cmp.Or(lockKey, defaultKey))
		},
	}
	cmd.Flags().StringVar(&lockKey, "lock-key", "", "the installation's `name`, its key in Redis (default "+defaultKey+")")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite FILE")
	return cmd
}

func newConfigSchemaCommand(e cmdline.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the configuration's JSON Schema, for editors",
		Long: "Print the configuration's JSON Schema (draft 2020-12). With the schema, an\n" +
			"editor completes keys, explains them and marks most mistakes; `baton config\n" +
			"check` reports all mistakes.",
		Example: "  baton config schema > baton.schema.json",
		Args:    cmdline.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.Write(config.Schema)
			return err
		},
	}
}

// defaultKey is the lock key in the example configuration.
var defaultKey = config.Default().Election.LockKey

// exampleFor returns the example configuration with the given lock key.
func exampleFor(lockKey string) ([]byte, error) {
	if err := config.CheckLockKey(lockKey); err != nil {
		return nil, err
	}
	quoted, err := yaml.Marshal(lockKey)
	if err != nil {
		return nil, fmt.Errorf("write the lock key: %w", err)
	}
	line := []byte("  lock_key: " + defaultKey + "\n")
	return bytes.Replace(configs.Example, line, append([]byte("  lock_key: "), quoted...), 1), nil
}

// writeExample writes the whole file or leaves the old file unchanged, so the file is never incomplete. The group may read the file, but
// other users may not, because the file may contain a DSN with a password.
func writeExample(path string, example []byte, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s exists already; use --force to overwrite it", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the example: %w", err)
	}
	if err := renameio.WriteFile(path, example, 0o640, renameio.WithExistingPermissions()); err != nil {
		return fmt.Errorf("write the example: %w", err)
	}
	return nil
}
