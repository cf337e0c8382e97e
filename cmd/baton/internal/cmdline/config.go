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

// If no flag names the configuration file, the environment variable ConfigEnv contains the file's path. DefaultConfig is the path if that
// variable is not set.
const (
	ConfigEnv     = "BATON_CONFIG"
	DefaultConfig = "/etc/baton/baton.yaml"
)

// AddRunFlags adds the flags of a node to cmd: --config and a flag for every setting.
func AddRunFlags(cmd *cobra.Command, e Env) {
	var names []string
	for _, s := range config.Settings() {
		names = append(names, s.Flag)
	}
	AddConfigFlags(cmd, e, names...)
}

// AddTargetFlags adds the flags that name an election to cmd and its subcommands.
func AddTargetFlags(cmd *cobra.Command, e Env) { AddConfigFlags(cmd, e, "redis", "lock-key") }

// AddConfigFlags adds to cmd the flag --config and the flags of the settings in names.
func AddConfigFlags(cmd *cobra.Command, e Env, names ...string) {
	flags := cmd.PersistentFlags()
	flags.String("config", "", fmt.Sprintf("configuration `file` (default $%s, else %s if it is there)", ConfigEnv, DefaultConfig))
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
	for _, s := range config.Settings() {
		if slices.Contains(names, s.Flag) {
			// All flags are texts, also the flags of durations, because package config parses their values. So a wrong value results in the
			// same error in a flag, in a variable and in the file.
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

// AddNumberFlag adds the flag -n, which limits the number of entries that a command shows.
func AddNumberFlag(cmd *cobra.Command, n *int, usual int, usage string) {
	cmd.Flags().IntVarP(n, "number", "n", usual, usage)
}

// LoadConfig returns the configuration in effect for cmd. Flags override the environment, and the environment overrides the file. An error
// has the exit code of a usage error.
func LoadConfig(cmd *cobra.Command, e Env) (config.Config, error) {
	path, err := ConfigPath(cmd, e)
	if err != nil {
		return config.Config{}, UsageError(err)
	}
	return ReadConfig(cmd, e, path)
}

// LoadElection works like [LoadConfig], but it does not validate flushes. It is for commands that need only elections.
func LoadElection(cmd *cobra.Command, e Env) (config.Config, error) {
	path, err := ConfigPath(cmd, e)
	if err != nil {
		return config.Config{}, UsageError(err)
	}
	checks := tasks.Checks()
	checks.Flush = nil
	return readChecked(cmd, e, path, checks)
}

// ReadConfig works like [LoadConfig], but the caller has already chosen the file.
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

// ConfigPath returns the path in --config, or else the path in $BATON_CONFIG, or else the default path if that file exists. Otherwise it
// returns "", and a node without a file campaigns but runs no jobs.
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

// GivenFlags returns a lookup that finds only the flags that were given on the command line.
func GivenFlags(cmd *cobra.Command) config.Lookup {
	return func(name string) (string, bool) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
}
