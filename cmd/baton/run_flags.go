package main

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

const (
	configEnv     = "BATON_CONFIG"
	defaultConfig = "/etc/baton/baton.yaml"
)

// addRunFlags gives cmd the flags that make up a node: --config and one for
// every setting.
func addRunFlags(cmd *cobra.Command, e env) {
	var names []string
	for _, s := range config.Settings() {
		names = append(names, s.Flag)
	}
	addConfigFlags(cmd, e, names...)
}

// addTargetFlags gives cmd and its subcommands what names an election.
func addTargetFlags(cmd *cobra.Command, e env) { addConfigFlags(cmd, e, "redis", "lock-key") }

func addConfigFlags(cmd *cobra.Command, e env, names ...string) {
	flags := cmd.PersistentFlags()
	flags.String("config", "", fmt.Sprintf("configuration `file` (default $%s, else %s if it is there)", configEnv, defaultConfig))
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
	for _, s := range config.Settings() {
		if slices.Contains(names, s.Flag) {
			// Texts, also for durations: config parses them, so that a bad one is
			// reported in the same words wherever it comes from.
			flags.String(s.Flag, "", fmt.Sprintf("%s [$%s]", s.Usage, s.Env))
		}
	}
	if slices.Contains(names, "lock-key") {
		lockKeys(e).asFlag(cmd, "lock-key")
	}
	for flag, values := range map[string][]string{"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"}} {
		if slices.Contains(names, flag) {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	cmd.Flags().SortFlags = false
}

// addNumberFlag is -n wherever a command shows so many of something.
func addNumberFlag(cmd *cobra.Command, n *int, usual int, usage string) {
	cmd.Flags().IntVarP(n, "number", "n", usual, usage)
}

// loadConfig is the configuration in effect for cmd: its flags over the
// environment over the file. Its errors have the exit code of bad usage.
func loadConfig(cmd *cobra.Command, e env) (config.Config, error) {
	path, err := configPath(cmd, e)
	if err != nil {
		return config.Config{}, usageError(err)
	}
	return readConfig(cmd, e, path)
}

// loadElection is loadConfig for who asks about elections alone: what a job flushes is not checked.
func loadElection(cmd *cobra.Command, e env) (config.Config, error) {
	path, err := configPath(cmd, e)
	if err != nil {
		return config.Config{}, usageError(err)
	}
	checks := tasks.Checks()
	checks.Flush = nil
	return readChecked(cmd, e, path, checks)
}

// readConfig is loadConfig with the file chosen already.
func readConfig(cmd *cobra.Command, e env, path string) (config.Config, error) {
	return readChecked(cmd, e, path, tasks.Checks())
}

func readChecked(cmd *cobra.Command, e env, path string, checks config.Checks) (config.Config, error) {
	c, err := config.Read(config.Input{Path: path, Env: e.getenv, Flags: givenFlags(cmd), Checks: checks})
	if err != nil {
		return c, usageError(err)
	}
	return c, nil
}

// configPath is --config, else $BATON_CONFIG, else the default one if it is
// there, else empty: a node without a file campaigns and runs no jobs.
func configPath(cmd *cobra.Command, e env) (string, error) {
	if path, ok := givenFlags(cmd)("config"); ok {
		if path == "" {
			return "", errors.New("--config is empty; name a file")
		}
		return path, nil
	}
	if path, _ := e.getenv(configEnv); path != "" {
		return path, nil
	}
	switch _, err := os.Stat(defaultConfig); {
	case err == nil:
		return defaultConfig, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	default:
		return "", fmt.Errorf("the default configuration: %w", err)
	}
}

// givenFlags finds flags that stand on the command line.
func givenFlags(cmd *cobra.Command) config.Lookup {
	return func(name string) (string, bool) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
}
