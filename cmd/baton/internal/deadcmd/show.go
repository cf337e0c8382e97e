package deadcmd

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/operate"
)

func newDeadShowCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var f deadFlags
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a dead letter whole, and what to do about it",
		Long: "Show one dead letter: where it comes from, the whole reason and the whole\n" +
			"record. ID is the letter's id, or a beginning that no other id has.",
		Example: "  baton dead show 3f2a9c41d07b\n  baton dead show 3f2a9c41d07b -o json",
		Args:    cmdline.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDead(cmd, e, func(d operate.Operator) error {
				l, err := letterOf(cmd.Context(), d, args[0], f.Database)
				if err != nil {
					return err
				}
				configured := slices.ContainsFunc(d.Configured(cmd.Context()), func(j diagnose.Job) bool { return j.Name == l.Job })
				return out.Print(e.Stdout, readable([]operate.Letter{l})[0],
					func(w io.Writer) error { return printLetter(w, l, configured) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	f.addDatabase(cmd, e)
	cmdline.LetterIDs(e).AsArguments(cmd, 1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// readableLetter is a dead letter whose record is written as a JSON object instead of as a text.
type readableLetter struct {
	operate.LetterKey
	BatchID string          `json:"batch_id"`
	At      time.Time       `json:"at"` // by the database's clock
	Error   string          `json:"error"`
	Record  json.RawMessage `json:"record"`
}

func readable(letters []operate.Letter) []readableLetter {
	all := make([]readableLetter, len(letters))
	for i, l := range letters {
		record := json.RawMessage(l.Record)
		if !json.Valid(record) { // the record is cut off
			record, _ = json.Marshal(l.Record) // the encoding of a text cannot fail
		}
		all[i] = readableLetter{l.Key(), l.BatchID, l.At, l.Error, record}
	}
	return all
}

func printLetter(w io.Writer, l operate.Letter, configured bool) error {
	job := l.Job
	if !configured {
		job += " (not in the configuration any more)"
	}
	err := show.Say(w, "id        %s\njob       %s\ndatabase  %s\nbatch     %s\nat        %s\nreason    %s\nrecord    %s\n",
		l.ID, job, l.Database, l.BatchID, show.Here(l.At), indented(l.Error), indented(spread(l.Record)))
	if err != nil {
		return err
	}
	id := cmdline.ShortID(l.ID)
	if configured {
		err = show.Say(w, "\nOnce its job, its table or the record is fixed:  baton dead replay %s\n", id)
	}
	if err == nil {
		err = show.Say(w, "To give it up:  baton dead drop %s\n", id)
	}
	return err
}

// spread returns a JSON object with one line for each member.
func spread(record string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(record), "", "  ") != nil {
		return record
	}
	return b.String()
}

// indented aligns all lines of a text.
func indented(text string) show.SafeText {
	return show.SafeText(strings.ReplaceAll(string(show.LinesOf(text)), "\n", "\n          "))
}
