package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
)

func newCompletionCommand(e cmdline.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes baton's commands in a shell",
		Long: `Print a script that completes baton's commands in a shell. To load it:

  bash   source <(baton completion bash)
  zsh    baton completion zsh > "${fpath[1]}/_baton"
  fish   baton completion fish > ~/.config/fish/completions/baton.fish

bash needs its package bash-completion. The packages of baton have all three
scripts.`,
		Example:   "  baton completion bash\n  baton completion zsh\n  baton completion fish",
		Args:      cmdline.OneArg,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(e.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(e.Stdout)
			case "fish":
				return root.GenFishCompletion(e.Stdout, true)
			}
			return cmdline.UsageError(fmt.Errorf("completion %q: write bash, zsh or fish", args[0]))
		},
	}
}
