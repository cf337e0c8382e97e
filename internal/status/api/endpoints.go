package api

import (
	"fmt"
	"net/http"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// endpoints returns the endpoints of the API. The OpenAPI description is generated from them.
func endpoints() []endpoint {
	count := func(summary string) parameter { return parameter{"n", "integer", summary} }
	letters := []parameter{
		{"job", "string", "Only dead letters of this job."},
		{"database", "string", "Only dead letters in this database, by its name in the configuration."},
		{"within", "string", "Only records that became dead letters within this time, such as 1h."},
		{"older_than", "string", "Only records that became dead letters longer ago than this time, such as 1h."},
		{"text", "string", "Only dead letters with this text in the record, which is JSON, or in the reason."},
		{"reason", "string", "Only dead letters with this reason, as in the answer of /dead-letters/reasons, among the newest 5000."},
	}
	return append([]endpoint{
		{"GET", "/status", "The state of the election and its jobs, as this node knows it. " +
			"503 before the first reading.", nil, nil, statusReply{}, false, (*API).askStatus},
		{"GET", "/leader", "The node that leads.", nil, nil, leaderReply{}, false, (*API).askLeader},
		{"GET", "/nodes", "The nodes of the election.", nil, nil, nodesReply{}, false, (*API).askNodes},
		{"GET", "/jobs", "The jobs and their states.", nil, nil, jobsReply{}, false, (*API).askJobs},
		{"GET", "/jobs/{job}", "One job.", nil, nil, diagnose.Job{}, false, (*API).askJob},
		{"GET", "/jobs/{job}/history", "The finished runs and missed slots of a job, the newest first.",
			[]parameter{count("How many entries, up to 1000; 20 if it is left out."),
				{"before", "string", "Only entries older than the entry with " +
					"this id."}}, nil, historyReply{}, false, ofNode((*API).askHistory)},
		{"GET", "/jobs/{job}/next", "The coming slots of a job.",
			[]parameter{count("How many slots, up to 1000; 10 if it is left out."),
				{"from", "string", "Slots after this time, RFC 3339; now if it is left out."}}, nil, operate.Coming{},
			false, ofNode((*API).askNext)},
		{"GET", "/jobs/{job}/acceptance", "How many rows wait to be accepted as rows of the job, which never wrote them.", nil, nil,
			operate.Acceptance{}, true, ofNode((*API).askAcceptance)},
		{"GET", "/jobs/{job}/runs/{run}", "The state of a run.", nil, nil, operate.JobRun{}, false, ofNode((*API).askRun)},
		{"GET", "/jobs/{job}/runs/{run}/output", "The output of a run of a command, as far as baton keeps it.",
			[]parameter{{"from", "integer", "Begin at this byte of the whole output."}}, nil, outputReply{},
			true, ofNode((*API).askOutput)},
		{"GET", "/events", "The history of the election, the newest first.",
			[]parameter{count("How many, up to 1000; 50 if it is left out.")}, nil, eventsReply{}, false, ofNode((*API).askEvents)},
		{"GET", "/samples", "The lag of the flushes and the rows that they wrote: a sample each 15 seconds, for an hour.",
			[]parameter{{"since", "string", "Samples later than this time, RFC 3339."}}, nil, samplesReply{}, false,
			ofNode((*API).askSamples)},
		{"GET", "/runs", "A summary of the last 30 runs of every job, at most ten seconds old; a job's history has more details.", nil, nil,
			runsReply{}, false, ofNode((*API).askRuns)},
		{"GET", "/explain/{node}", "Why a node leads, or does not.", nil, nil, operate.Explanation{}, false, ofNode((*API).askExplain)},
		{"GET", "/dead-letters", "Records that did not fit their table, the newest first.",
			append([]parameter{count("How many, up to 1000; 50 if it is left out."),
				{"whole", "boolean", "Do not cut long records."}}, letters...), nil, lettersReply{}, true, ofNode((*API).askLetters)},
		{"GET", "/dead-letters/keys", "Which dead letters there are, at most 5000.", letters, nil, keysReply{}, true,
			ofNode((*API).askKeys)},
		{"GET", "/dead-letters/reasons", "How many dead letters there are, by job and reason.", letters, nil,
			reasonsReply{}, true, ofNode((*API).askReasons)},
		{"GET", "/dead-letters/{id}", "One dead letter, by its id or the beginning of it; its record is whole.",
			[]parameter{{"database", "string", "Only in this database, by its name in the configuration."}}, nil,
			operate.Letter{}, true, ofNode((*API).askLetter)},
		{"GET", "/deleted-rows", "Rows that jobs with keep_deleted deleted or overwrote, the newest row first, without the " +
			"text of long rows.",
			[]parameter{count("How many, up to 1000; 50 if it is left out."), letters[0], letters[1],
				{"text", "string", "Only rows whose JSON, or whose key's JSON, contains this text."}}, nil, rowsReply{}, true,
			ofNode((*API).askRows)},
		{"GET", "/deleted-rows/{id}", "One deleted row, whole.", letters[1:2], nil, operate.DeletedRow{}, true, ofNode((*API).askRow)},
		{"GET", "/openapi.json", "This description.", nil, nil, map[string]any{}, false, (*API).askOpenAPI},
	}, orderEndpoints()...)
}

// orderEndpoints returns the endpoints that give orders.
func orderEndpoints() []endpoint {
	order := func(path, summary string, body any, ask askFunc) endpoint {
		return endpoint{"POST", path, summary, nil, body, operate.Outcome{}, true, ask}
	}
	return []endpoint{
		order("/stepdown", "Let the leader end its jobs and hand over the lead, and wait for the "+
			"next term.", stepDownBody{}, give(giveStepDown)),
		order("/pause", "Let no node lead until resume, and wait until no node leads.", waitBody{}, give(giveElection(operate.KindPause))),
		order("/resume", "End a pause, and wait until a node leads.", waitBody{}, give(giveElection(operate.KindResume))),
		order("/jobs/pause", "Run no job until resume.", pauseJobBody{}, give(givePauseJob)),
		order("/jobs/resume", "End the pause of all jobs.", reloadBody{}, give(giveResumeJob)),
		order("/jobs/{job}/run", "Let the leader run a job now.", runBody{}, give(giveRun)),
		order("/jobs/{job}/cancel", "Let the leader end all runs of a job.", cancelBody{}, give(giveCancel)),
		order("/jobs/{job}/verify", "Let the leader compare what Redis has with the rows of a job's table. The job's state "+
			"contains the result.",
			verifyBody{}, give(giveVerify)),
		order("/jobs/{job}/backfill", "Let the leader mark all keys of a job, so that its next runs flush them.",
			backfillBody{}, give(giveBackfill)),
		order("/jobs/{job}/accept", "Accept rows that a job never wrote as rows of the job: "+
			"its next pass changes and deletes at most the given numbers.",
			acceptBody{}, give(giveAccept)),
		order("/jobs/{job}/pause", "Do not run a job until resume.", pauseJobBody{}, give(givePauseJob)),
		order("/jobs/{job}/resume", "End the pause of a job.", reloadBody{}, give(giveResumeJob)),
		order("/dead-letters/replay", "Write dead letters to their tables, each once.", replayAllBody{}, give(giveReplayAll)),
		order("/dead-letters/drop", "Remove dead letters for good.", dropAllBody{}, give(giveDropAll)),
		order("/dead-letters/{id}/replay", "Write a dead letter to its table, once.", replayBody{}, give(giveReplay)),
		order("/dead-letters/{id}/drop", "Remove a dead letter for good.", dropBody{}, give(giveDrop)),
		order("/deleted-rows/{id}/undelete", "Put a deleted row back into its table.", undeleteBody{}, give(giveUndelete)),
		order("/reload", "Let this node read its configuration again.", reloadBody{}, give(giveReload)),
		order("/notifications/test", "Let this node send a test to the targets of its notifications. "+
			"The code done means only that the node has tried: tests contains the results.",
			testBody{}, give(giveTestNotify)),
	}
}

// ofNode wraps an endpoint that needs the API's Node. If the API has no Node, the endpoint answers "not found".
func ofNode(ask askFunc) askFunc {
	return func(a *API, r *http.Request) (any, error) {
		if a.Node == nil {
			return nil, fmt.Errorf("%w: this node answers only with its own state", operate.ErrNotFound)
		}
		return ask(a, r)
	}
}
