package cmdline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
)

// Where the configuration is, unless a flag names it.
const (
	ConfigEnv     = "BATON_CONFIG"
	DefaultConfig = "/etc/baton/baton.yaml"
)

// AddRunFlags gives cmd the flags that make up a node: --config and one for
// every setting.
func AddRunFlags(cmd *cobra.Command, e Env) {
	var names []string
	for _, s := range config.Settings() {
		names = append(names, s.Flag)
	}
	AddConfigFlags(cmd, e, names...)
}

// AddTargetFlags gives cmd and its subcommands what names an election.
func AddTargetFlags(cmd *cobra.Command, e Env) { AddConfigFlags(cmd, e, "redis", "lock-key") }

// AddConfigFlags gives cmd --config, and the flags of the settings with these names.
func AddConfigFlags(cmd *cobra.Command, e Env, names ...string) {
	flags := cmd.PersistentFlags()
	flags.String("config", "", fmt.Sprintf("configuration `file` (default $%s, else %s if it is there)", ConfigEnv, DefaultConfig))
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
	for _, s := range config.Settings() {
		if slices.Contains(names, s.Flag) {
			// Texts, also for durations: config parses them, so that a bad one is
			// reported in the same words wherever it comes from.
			flags.String(s.Flag, "", fmt.Sprintf("%s [$%s]", s.Usage, s.Env))
		}
	}
	if slices.Contains(names, "lock-key") {
		lockKeys(e).AsFlag(cmd, "lock-key")
	}
	for flag, values := range map[string][]string{"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"}} {
		if slices.Contains(names, flag) {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	cmd.Flags().SortFlags = false
}

// AddNumberFlag adds -n, the number of entries that a command shows.
func AddNumberFlag(cmd *cobra.Command, n *int, usual int, usage string) {
	cmd.Flags().IntVarP(n, "number", "n", usual, usage)
}

// LoadConfig is the configuration in effect for cmd: its flags over the
// environment over the file. Its errors have the exit code of bad usage.
func LoadConfig(cmd *cobra.Command, e Env) (config.Config, error) {
	path, err := ConfigPath(cmd, e)
	if err != nil {
		return config.Config{}, UsageError(err)
	}
	return ReadConfig(cmd, e, path)
}

// LoadElection is LoadConfig without the validation of flushes, for commands that need only elections.
func LoadElection(cmd *cobra.Command, e Env) (config.Config, error) {
	path, err := ConfigPath(cmd, e)
	if err != nil {
		return config.Config{}, UsageError(err)
	}
	checks := tasks.Checks()
	checks.Flush = nil
	return readChecked(cmd, e, path, checks)
}

// ReadConfig is loadConfig with the file chosen already.
func ReadConfig(cmd *cobra.Command, e Env, path string) (config.Config, error) {
	return readChecked(cmd, e, path, tasks.Checks())
}

func readChecked(cmd *cobra.Command, e Env, path string, checks config.Checks) (config.Config, error) {
	c, err := config.Read(config.Input{Path: path, Env: e.Getenv, Flags: GivenFlags(cmd), Checks: checks})
	if err != nil {
		return c, UsageError(err)
	}
	return c, nil
}

// ConfigPath is --config, else $BATON_CONFIG, else the default one if it is
// there, else empty: a node without a file campaigns and runs no jobs.
func ConfigPath(cmd *cobra.Command, e Env) (string, error) {
	if path, ok := GivenFlags(cmd)("config"); ok {
		if path == "" {
			return "", errors.New("--config is empty; name a file")
		}
		return path, nil
	}
	if path, _ := e.Getenv(ConfigEnv); path != "" {
		return path, nil
	}
	switch _, err := os.Stat(DefaultConfig); {
	case err == nil:
		return DefaultConfig, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	default:
		return "", fmt.Errorf("the default configuration: %w", err)
	}
}

// GivenFlags finds flags that stand on the command line.
func GivenFlags(cmd *cobra.Command) config.Lookup {
	return func(name string) (string, bool) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
}
