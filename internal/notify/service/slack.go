package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// slack is an incoming webhook of Slack, or of a service with the same answers (Mattermost). Slack accepts about one message per second.
// The address of the webhook is the secret.
var slack = Format{
	Name: "slack",
	Encode: func(m Message, _ string) ([]byte, error) {
		// These are Slack's three control characters. For example, "<!channel>" would call all members.
		escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(said(m, 4<<10, ""))
		return json.Marshal(map[string]string{"text": escaped})
	},
	Judge: judgeSlack,
	Pace:  Pace{1, time.Second},
}

// slackRefusals maps Slack's error words to explanations for users of baton.
var slackRefusals = map[string]string{
	"invalid_payload":                   "the request is malformed",
	"no_text":                           "the request is malformed",
	"invalid_token":                     "the address belongs to no webhook",
	"no_service":                        "the webhook is disabled or removed",
	"no_active_hooks":                   "the webhook is disabled",
	"no_team":                           "the workspace does not exist",
	"team_disabled":                     "the workspace is disabled",
	"user_not_found":                    "the webhook's user does not exist",
	"channel_not_found":                 "the webhook's channel does not exist",
	"channel_is_archived":               "the webhook's channel is archived",
	"action_prohibited":                 "an administrator of the workspace forbids the message",
	"posting_to_general_channel_denied": "an administrator of the workspace forbids the message",
}

// judgeSlack accepts only the text "ok", which a webhook sends after it has accepted a message. Another page with the status code 200, such
// as the page of a proxy, does not mean that the message was delivered.
func judgeSlack(a Answer) error {
	word := strings.TrimSpace(string(a.Body))
	if why, known := slackRefusals[word]; known {
		return Refused("%s: %s", word, why)
	}
	if err := judge(a); err != nil {
		if a.Status == http.StatusTooManyRequests && retryAfter(a.RetryAfter) == 0 {
			return &Later{slowDown, err}
		}
		return err
	}
	if word != "ok" {
		return fmt.Errorf(`the answer is %d without "ok": is this the address of a Slack webhook?`, a.Status)
	}
	return nil
}
