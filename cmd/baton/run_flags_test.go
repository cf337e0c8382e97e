package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
)

// load runs a command that only loads its configuration.
func (c *cli) load(flags func(*cobra.Command, cmdline.Env), args ...string) (config.Config, error) {
	c.t.Helper()
	var got config.Config
	e := cmdline.Env{Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
	cmd := &cobra.Command{
		Use: "x", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			got, err = cmdline.LoadConfig(cmd, e)
			return err
		},
	}
	flags(cmd, e)
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	err := cmd.ExecuteContext(context.Background())
	return got, err
}

func TestRunHasTheFlagsThatItPromises(t *testing.T) {
	for _, tc := range []struct {
		add  func(*cobra.Command, cmdline.Env)
		want []string
	}{
		{cmdline.AddRunFlags, []string{"config", "redis", "lock-key", "ttl", "heartbeat-interval", "poll-interval", "node-id", "http", "log-level", "log-format"}},
		{cmdline.AddTargetFlags, []string{"config", "redis", "lock-key"}},
	} {
		cmd := &cobra.Command{}
		tc.add(cmd, cmdline.Env{})
		n := strings.Count(cmd.PersistentFlags().FlagUsages(), "--")
		for _, name := range tc.want {
			if cmd.PersistentFlags().Lookup(name) == nil {
				t.Errorf("no flag --%s", name)
			}
		}
		if n != len(tc.want) {
			t.Errorf("%d flags, want %v", n, tc.want)
		}
	}
}

func TestConfigurationIsLoadedFromTheNearestPlace(t *testing.T) {
	c := newCLI(t)
	c.file("flag.yaml", "election: {lock_key: flag}")
	c.file("env.yaml", "election: {lock_key: env}")
	want := func(key string, args ...string) {
		t.Helper()
		if got, err := c.load(cmdline.AddTargetFlags, args...); err != nil || got.Election.LockKey != key {
			t.Errorf("%v: got %q, %v, want %q", args, got.Election.LockKey, err, key)
		}
	}
	want("baton") // there is no file at all
	c.env["BATON_CONFIG"] = "env.yaml"
	want("env")
	want("flag", "--config", "flag.yaml")
	c.env["BATON_LOCK_KEY"] = "variable"
	want("variable", "--config", "flag.yaml")
	want("given", "--config", "flag.yaml", "--lock-key", "given")
}
