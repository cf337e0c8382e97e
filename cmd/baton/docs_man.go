package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"baton/configs"
	"baton/internal/config"
)

// configPage is the manual page of the configuration file, in section 5.
const configPage = "baton.yaml"

// pageName is a command's page: baton-job-run.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPages are all pages by their file names.
func manPages(root *cobra.Command, day time.Time) map[string]string {
	pages := map[string]string{}
	date := day.UTC().Format(time.DateOnly)
	for _, cmd := range documented(root) {
		pages[pageName(cmd)+".1"] = commandPage(cmd, date)
	}
	pages[configPage+".5"] = filePage(date)
	return pages
}

func commandPage(cmd *cobra.Command, date string) string {
	var r roff
	r.title(pageName(cmd), "1", date, "baton "+thisBuild().Version)
	r.section("NAME")
	fmt.Fprintf(&r, "%s \\- %s\n", roffText(pageName(cmd)), roffText(decapitalize(cmd.Short)))
	r.section("SYNOPSIS")
	rest := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
	if cmd.HasAvailableSubCommands() {
		rest = " COMMAND [flags]"
	}
	fmt.Fprintf(&r, "%s%s\n", bold(cmd.CommandPath()), roffText(rest))
	r.section("DESCRIPTION")
	r.text(about(cmd))
	if subs := below(cmd, false); len(subs) > 0 {
		r.section("COMMANDS")
		for _, sub := range subs {
			r.item(bold(pageName(sub))+"(1)", sub.Short)
		}
	}
	r.options(cmd)
	if lines := exampleOf(cmd); len(lines) > 0 {
		r.section("EXAMPLES")
		r.literal(lines)
	}
	for _, topic := range below(cmd, true) {
		if topic.Name() != "exit-codes" { // the next section
			r.section(strings.ToUpper(topic.Name()))
			r.text(topic.Long)
		}
	}
	r.exits(cmd)
	r.seeAlso(cmd)
	return r.String()
}

// decapitalize is how the first words of a page's name line are written.
func decapitalize(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

func (r *roff) options(cmd *cobra.Command) {
	begun := false
	eachFlag(cmd, func(f *pflag.Flag, value, usage string) {
		if !begun {
			begun = true
			r.section("OPTIONS")
		}
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		if value != "" {
			term += " " + italic(value)
		}
		r.item(term, usage)
	})
}

func (r *roff) exits(cmd *cobra.Command) {
	if cmd.HasAvailableSubCommands() && cmd.HasParent() {
		return
	}
	r.section("EXIT STATUS")
	codes := exitCodesOf(cmd)
	if !cmd.HasParent() {
		codes = exitCodes()
	}
	for _, c := range codes {
		means := c.means
		if !cmd.HasParent() && len(c.of) > 0 {
			means += " (" + strings.Join(c.of, ", ") + ")"
		}
		r.item(bold(fmt.Sprint(c.code)), means)
	}
}

func (r *roff) seeAlso(cmd *cobra.Command) {
	r.section("SEE ALSO")
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, bold(pageName(cmd.Parent()))+"(1)")
		for _, sub := range below(cmd.Parent(), false) {
			if sub != cmd && cmd.Parent().HasParent() {
				pages = append(pages, bold(pageName(sub))+"(1)")
			}
		}
	}
	slices.Sort(pages)
	pages = append(pages, bold(configPage)+"(5)")
	fmt.Fprintln(r, strings.Join(pages, ",\n"))
}

// filePage is the page of the configuration file: its rules, and the example that
// explains every key.
func filePage(date string) string {
	var r roff
	r.title(configPage, "5", date, "baton "+thisBuild().Version)
	r.section("NAME")
	fmt.Fprintf(&r, "%s \\- configuration of baton\n", roffText(configPage))
	r.section("SYNOPSIS")
	fmt.Fprintln(&r, roffText(defaultConfig))
	r.section("DESCRIPTION")
	r.text("The configuration of `baton run` and of the commands that look at it, in YAML. An unknown key is an error, " +
		"as is a value that does not fit: `baton config check` names each with its line.\n\n" +
		"Passwords, tokens and data source names are best kept out of the file: each has a key that names a file " +
		"with it, such as redis.password_file. ${NAME} in such a path stands for an environment variable.\n\n" +
		"`baton reload` has the daemon read the file again. What belongs to the node (node, redis, election, http) " +
		"takes a restart.")
	r.section("ENVIRONMENT")
	r.text("Flags go over environment variables, these go over the file. An empty variable counts as not set.")
	for _, s := range config.Settings() {
		r.item(bold(s.Env)+", "+bold("--"+s.Flag), s.Path)
	}
	r.section("ALL KEYS")
	r.text("This is the example that `baton config init` writes. What is commented out stands at its default, or is an example.")
	r.WriteString(".PP\n")
	r.literal(strings.Split(strings.TrimRight(string(configs.Example), "\n"), "\n"))
	r.section("SEE ALSO")
	fmt.Fprintln(&r, strings.Join([]string{bold("baton") + "(1)", bold("baton-config-check") + "(1)", bold("baton-config-init") + "(1)", bold("baton-config-schema") + "(1)", bold("baton-config-show") + "(1)", bold("baton-reload") + "(1)"}, ",\n"))
	return r.String()
}
