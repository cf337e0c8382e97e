package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"baton/cmd/baton/internal/cmdline"
	"baton/configs"
	"baton/internal/config"
)

// The tests write the pages, because the binary would otherwise have to contain a writer of pages.
var (
	update = flag.Bool("update", false, "write the pages of docs/reference that are made from the commands")
	manDir = flag.String("man", "", "write the manual pages into this `directory`")
)

// documented returns the commands that have a page or a section: the root command and all commands that are not hidden.
func documented(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

// pageName returns the name of a command's page, such as baton-job-run.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// forPages returns the root command with all help texts in Markdown, as cobra's writers of pages expect them.
func forPages() *cobra.Command {
	root := newRootCommand(cmdline.Env{})
	root.InitDefaultHelpCmd()
	every(root, func(cmd *cobra.Command) {
		cmd.DisableAutoGenTag = true
		cmd.Hidden = cmd.Hidden || cmd.Name() == "help"
		cmd.Long = markdown(cmd.Long)
		cmd.Example = regexp.MustCompile(`(?m)^  `).ReplaceAllString(cmd.Example, "")
	})
	return root
}

// markdown returns a help text as Markdown. Lines that begin with blanks stay unchanged.
func markdown(help string) string {
	lines := strings.Split(help, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		} else {
			lines[i] = unmarked(line)
		}
	}
	return strings.Join(lines, "\n")
}

// unmarked escapes the characters that have a meaning in Markdown.
func unmarked(text string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`, "_", `\_`, "|", `\|`).Replace(text)
}

// exits returns the section about a command's exit codes. The section of the root command contains all exit codes.
func exits(cmd *cobra.Command) string {
	codes := exitCodesOf(cmd)
	if !cmd.HasParent() {
		codes = exitCodes()
	}
	var b strings.Builder
	b.WriteString("\n\n# EXIT STATUS\n")
	for _, c := range codes {
		of := ""
		if !cmd.HasParent() && len(c.of) > 0 {
			of = " (" + strings.Join(c.of, ", ") + ")"
		}
		fmt.Fprintf(&b, "**%d**\n: %s%s\n\n", c.code, unmarked(c.means), of)
	}
	return b.String()
}

// manPages writes all pages of the manual to a directory.
func manPages(t *testing.T, dir string) {
	t.Helper()
	root := forPages()
	for _, cmd := range documented(root) {
		if !cmd.HasParent() {
			environment, _, err := cmd.Find([]string{"environment"})
			if err != nil {
				t.Fatal(err)
			}
			cmd.Long += "\n\n# ENVIRONMENT\n" + environment.Long
		}
		if !cmd.HasParent() || !cmd.HasAvailableSubCommands() {
			cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + exits(cmd)
		}
	}
	header := doc.GenManHeader{Source: "baton " + thisBuild().Version, Manual: "baton manual"}
	if err := doc.GenManTree(root, &header, dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "baton.yaml.5"), md2man.Render([]byte(configPage())))
}

// configPage returns the page about the configuration file. It contains the rules of the file, and the example that explains every key.
func configPage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%% \"BATON.YAML\" \"5\" \"\" \"baton %s\" \"baton manual\"\n# NAME\nbaton.yaml - configuration of baton\n\n", thisBuild().Version)
	b.WriteString("# SYNOPSIS\n**" + cmdline.DefaultConfig + "**\n\n# DESCRIPTION\n" +
		"The configuration of **baton run** and of the commands that read it, in YAML. An unknown key is an error, " +
		"as is a value that does not fit: **baton config check** names each with its line.\n\n" +
		"Keep passwords, tokens and data source names out of the file: each has a key that names a file " +
		"with it, such as redis.password\\_file. ${NAME} in such a path stands for an environment variable.\n\n" +
		"**baton reload** has the daemon read the file again. What belongs to the node (node, redis, election, http) " +
		"takes a restart.\n\n# ENVIRONMENT\n" +
		"Flags override environment variables, which override the file. An empty variable counts as not set.\n\n")
	for _, s := range config.Settings() {
		fmt.Fprintf(&b, "**%s**, **--%s**\n: %s\n\n", unmarked(s.Env), s.Flag, unmarked(s.Path))
	}
	b.WriteString("# ALL KEYS\nThis is the example that **baton config init** writes. " +
		"What is commented out stands at its default, or is an example.\n\n```\n" + string(configs.Example) + "```\n\n# SEE ALSO\n" +
		"**baton(1)**, **baton-config-check(1)**, **baton-config-init(1)**, **baton-config-schema(1)**, **baton-config-show(1)**, **baton-reload(1)**\n")
	return b.String()
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestManualPages writes the manual pages for the packages. With -man DIR it writes them to DIR.
func TestManualPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	manPages(t, dir)
	page := func(name string, parts ...string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.NewReplacer(`\-`, "-", `\&`, "", `\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\\`, `\`).Replace(string(text))
		for _, part := range parts {
			if !strings.Contains(shown, part) {
				t.Errorf("%s lacks %q:\n%s", name, part, shown)
			}
		}
	}
	for _, cmd := range documented(newRootCommand(cmdline.Env{})) {
		parts := []string{".SH NAME\n" + pageName(cmd) + " - ", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n" + strings.Fields(cmp.Or(cmd.Long, cmd.Short))[0], ".SH EXAMPLE\n", "baton " + thisBuild().Version}
		if !cmd.HasParent() || !cmd.HasAvailableSubCommands() {
			parts = append(parts, ".SH EXIT STATUS\n", ".SH SEE ALSO\n")
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				parts = append(parts, "--"+f.Name)
			}
		})
		page(pageName(cmd)+".1", append(parts, strings.Fields(strings.ReplaceAll(cmd.Long, "`", ""))...)...)
	}
	page("baton.1", "BATON_LOCK_KEY", ".SH ENVIRONMENT\n")
	page("baton.yaml.5", append(strings.Split(strings.TrimSpace(string(configs.Example)), "\n"), "BATON_TTL, --ttl")...)
}

// referencePages returns the pages of docs/reference that are generated from the commands.
func referencePages(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"cli.md": cliPage(t), "exit-codes.md": exitCodesPage()}
}

const generated = "<!-- Generated by `make docs`: do not edit. -->\n"

func cliPage(t *testing.T) string {
	t.Helper()
	root := forPages()
	var b strings.Builder
	b.WriteString("# The command line\n" + generated + "\n[Exit codes](exit-codes.md) have a page of their own.\n\n")
	environment, _, err := root.Find([]string{"environment"})
	if err != nil {
		t.Fatal(err)
	}
	variables, _, _ := strings.Cut(environment.Long, "\n\nWith OpenTelemetry") // the page about the variables lists them
	fmt.Fprintf(&b, "## Environment\n\n%s\n\nWith OpenTelemetry's variables baton run sends [traces](../how-to/traces.md#variables).\n\n", variables)
	common := commonFlags(root)
	fmt.Fprintf(&b, "## Common flags\n\nThese mean the same in every command that takes them. %s are called *%s*.\n\n```text\n%s```\n",
		strings.Join(connectionFlags(), ", "), connection, common.FlagUsages())
	for _, cmd := range documented(root) {
		if cmd.HasParent() { // the flags of all commands appear only once
			root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
		}
		section(&b, cmd, common)
	}
	return b.String()
}

// commonFlags returns the flags that at least three commands explain in the same way. They appear only once on the page.
func commonFlags(root *cobra.Command) *pflag.FlagSet {
	count := map[[4]string]int{}
	common := pflag.NewFlagSet("common", pflag.ContinueOnError)
	every(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			count[shapeOf(f)]++
			if count[shapeOf(f)] == 3 && common.Lookup(f.Name) == nil {
				common.AddFlag(f)
			}
		})
	})
	return common
}

// shapeOf returns the text about a flag in the help.
func shapeOf(f *pflag.Flag) [4]string { return [4]string{f.Name, f.Shorthand, f.Usage, f.DefValue} }

// section writes the help of a command, without the flags that several commands explain in the same way.
func section(b *strings.Builder, cmd *cobra.Command, common *pflag.FlagSet) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Hidden = true
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	if !cmd.HasParent() || cmd.Long == "" {
		fmt.Fprintf(b, "%s\n\n", unmarked(cmd.Short))
	}
	if cmd.HasParent() && cmd.HasAvailableSubCommands() && cmd.Long != "" { // its examples belong to its subcommands
		fmt.Fprintf(b, "%s\n", cmd.Long)
		return
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "%s\n\n", cmd.Long)
	}
	own, also := pflag.NewFlagSet("own", pflag.ContinueOnError), []string(nil)
	own.SortFlags = false
	cmd.LocalFlags().SortFlags = false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch known := common.Lookup(f.Name); {
		case f.Hidden:
		case known != nil && shapeOf(known) == shapeOf(f):
			also = append(also, "`--"+f.Name+"`")
		default:
			own.AddFlag(f)
		}
	})
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "```text\n%s\n", cmd.UseLine())
		if own.HasAvailableFlags() {
			b.WriteString("\n" + own.FlagUsages())
		}
		b.WriteString("```\n\n")
		if len(also) > 0 {
			fmt.Fprintf(b, "And %s.\n\n", strings.Join(withoutConnection(also), ", "))
		}
	}
	fmt.Fprintf(b, "```sh\n%s\n```\n", strings.TrimSpace(cmd.Example))
}

// connection is the name of the flags that most commands use to find a node.
const connection = "connection flags"

// connectionFlags returns the connection flags.
func connectionFlags() []string {
	return []string{"`--config`", "`--lock-key`", "`--redis`", "`--server`", "`--token-file`", "`--ca-file`"}
}

// withoutConnection replaces the connection flags with the text in connection, if all of them are in flags.
func withoutConnection(flags []string) []string {
	rest := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return slices.Contains(connectionFlags(), f) })
	if len(flags)-len(rest) < len(connectionFlags()) {
		return flags
	}
	return append(rest, connection)
}

func exitCodesPage() string {
	var b strings.Builder
	b.WriteString("# Exit codes\n" + generated)
	b.WriteString("\nA script can tell by them what happened. `baton help exit-codes` prints the same.\n\n" +
		"| code | what it means | of which commands |\n|---|---|---|\n")
	for _, c := range exitCodes() {
		of := "all"
		if len(c.of) > 0 {
			of = "`" + strings.Join(c.of, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", c.code, unmarked(c.means), of)
	}
	b.WriteString("\n`lock` exits with its command's exit code, or 128 plus the signal that ended it, unless a code above says otherwise.\n")
	return b.String()
}

// TestReferenceIsWhatTheCommandsSay checks that the documentation of the commands is equal to their help texts.
func TestReferenceIsWhatTheCommandsSay(t *testing.T) {
	for name, want := range referencePages(t) {
		file := filepath.Join("../../docs/reference", name)
		if *update {
			write(t, file, []byte(want))
		}
		if is, err := os.ReadFile(file); err != nil || string(is) != want {
			t.Errorf("docs/reference/%s is out of date (%v): make docs", name, err)
		}
	}
}

// exitCodesOf returns the exit codes of a command.
func exitCodesOf(cmd *cobra.Command) []exitMeaning {
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return slices.DeleteFunc(exitCodes(), func(c exitMeaning) bool {
		return len(c.of) > 0 && !slices.Contains(c.of, name)
	})
}
