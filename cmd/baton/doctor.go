package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/doctor"
	"baton/internal/text"
)

func newDoctorCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var unit string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what could lose data or stop a job, with remedies",
		Long: "Check Redis, every database, every job's table, the other nodes and this host.\n" +
			"Each finding names the possible loss and the remedy. doctor changes nothing,\n" +
			"and no check waits longer than 15 seconds. Run it as the user that runs baton.\n\n" +
			"Exit code 1 if there is an error, 0 if there is nothing worse than a warning,\n" +
			"2 if the configuration cannot be used.",
		Example: "  baton doctor\n  baton doctor --config /etc/baton/reports.yaml    # and baton@reports.service\n" +
			"  baton doctor -o json | jq '.findings[] | select(.severity == \"error\")'",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := cmdline.ConfigPath(cmd, e)
			if err != nil {
				return cmdline.UsageError(err)
			}
			c, err := cmdline.ReadConfig(cmd, e, path)
			if err != nil {
				return err
			}
			if unit == "" {
				unit = doctor.UnitOf(path)
			}
			waits := show.NewWaits(e.Stderr)
			d := doctor.ReportOf(doctor.Examine(cmd.Context(), c,
				doctor.Options{ConfigFile: path, Unit: unitName(unit), Getenv: e.Getenv, Seen: waits.Note}))
			waits.End()
			if err := cmd.Context().Err(); err != nil {
				return fmt.Errorf("doctor was stopped before all checks were done: %w", err)
			}
			width := widestText
			if size, ok := show.TerminalSize(e.Stdout); ok {
				width, _ = size()
			}
			if err := out.Print(e.Stdout, d, func(w io.Writer) error { return printReport(w, d, width) }); err != nil {
				return err
			}
			if d.Errors > 0 {
				return cmdline.WithCode(cmdline.ExitFailure, nil)
			}
			return nil
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmd.Flags().StringVar(&unit, "unit", "",
		"systemd's `unit` that runs baton here (default baton@NAME for /etc/baton/NAME.yaml, else baton)")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// unitName returns the full name of a systemd unit. Like systemctl, it accepts the name with or without the suffix ".service".
func unitName(unit string) string {
	return strings.TrimSuffix(unit, ".service") + ".service"
}

// widestText is the width of the table, in columns, if the output is no terminal.
const widestText = 120

// printReport prints a table with the severity, the subject and a text. The text consists of the finding, its consequence and the remedy,
// one below the other.
func printReport(w io.Writer, d doctor.Report, width int) error {
	var b strings.Builder
	const left = len("WARNING  ")
	subject := len("SUBJECT")
	for _, f := range d.Findings {
		subject = max(subject, utf8.RuneCountInString(f.Subject))
	}
	margin := strings.Repeat(" ", left+subject+2)
	columns := width - len(margin)
	narrow := columns < 40
	if narrow { // the text goes below the subject
		margin, columns = "    ", max(width-4, 20)
	}
	line := func(severity, subjectText, first string, more ...string) {
		head := fmt.Sprintf("%-*s%-*s  ", left, severity, subject, show.Clean(subjectText))
		if c := severityColour(doctor.Severity(severity)); c != "" {
			head = string(show.Paint(w, c, severity)) + strings.TrimPrefix(head, severity)
		}
		if narrow {
			head = strings.TrimRight(head, " ") + "\n" + margin
		}
		b.WriteString(head + strings.Join(show.Wrap(first, columns), "\n"+margin) + "\n")
		for _, m := range more {
			b.WriteString(margin + strings.Join(show.Wrap(m, columns), "\n"+margin) + "\n")
		}
	}
	if !narrow {
		line("SEVERITY", "SUBJECT", "FINDING, WHAT CAN BE LOST, → WHAT TO DO")
	}
	for _, f := range d.Findings {
		var more []string
		if f.Consequence != "" {
			more = append(more, f.Consequence)
		}
		if f.Remedy != "" {
			more = append(more, "→ "+f.Remedy)
		}
		line(string(f.Severity), f.Subject, f.What, more...)
	}
	fmt.Fprintf(&b, "%s, %s\n", text.Count(d.Errors, "error"), text.Count(d.Warnings, "warning"))
	_, err := io.WriteString(w, b.String())
	return err
}

func severityColour(s doctor.Severity) show.Colour {
	switch s {
	case doctor.SeverityError:
		return show.Bad
	case doctor.SeverityWarning:
		return show.Uneasy
	}
	return ""
}
