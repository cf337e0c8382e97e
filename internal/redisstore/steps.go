package redisstore

import "slices"

// Steps are the names of what the sources tell Observe: a process may die, or lose its
// connection, before and after each of them.
func Steps() []string {
	var all []string
	for _, kind := range []string{"counters", "plain", "watermark", "watermark keys", "hashes", "list", "stream", "scan"} {
		for _, step := range StepsOf(kind) {
			if !slices.Contains(all, step) {
				all = append(all, step)
			}
		}
	}
	return all
}

// StepsOf are the steps of one type of source, in the order of a flush. Counters with a
// key each are "plain", totals "watermark", and those with a key each "watermark keys".
func StepsOf(kind string) []string {
	switch kind {
	case "counters":
		return []string{stepStage, stepStaged, stepScan, stepScanned, stepDiscard, stepDiscarded}
	case "plain":
		return []string{
			stepStage, stepStaged, stepGather, stepGathered, stepSeal, stepSealed,
			stepScan, stepScanned, stepDiscard, stepDiscarded,
		}
	case "watermark":
		return []string{stepScan, stepScanned}
	case "watermark keys":
		return []string{stepScan, stepScanned, stepRows, stepRowsRead}
	case "hashes":
		return []string{
			stepStage, stepStaged, stepScan, stepScanned, stepRows, stepRowsRead,
			stepRemove, stepRemoved, stepDiscard, stepDiscarded,
		}
	case "list":
		return []string{
			stepStage, stepStaged, stepPart, stepPartRead,
			stepRemove, stepRemoved, stepDiscard, stepDiscarded,
		}
	case "stream":
		return []string{stepAnchor, stepAnchored, stepEntries, stepEntriesRead, stepTrim, stepTrimmed}
	case "scan":
		return []string{stepScan, stepScanned, stepRows, stepRowsRead, stepRecheck, stepRechecked}
	}
	return nil
}

const (
	stepStage       = "redis stage"
	stepStaged      = "redis staged"
	stepGather      = "redis gather"
	stepGathered    = "redis gathered"
	stepSeal        = "redis seal"
	stepSealed      = "redis sealed"
	stepScan        = "redis scan"
	stepScanned     = "redis scanned"
	stepRows        = "redis read rows"
	stepRowsRead    = "redis rows read"
	stepPart        = "redis read part"
	stepPartRead    = "redis part read"
	stepAnchor      = "redis look for position"
	stepAnchored    = "redis position looked for"
	stepEntries     = "redis read entries"
	stepEntriesRead = "redis entries read"
	stepRemove      = "redis remove page"
	stepRemoved     = "redis page removed"
	stepRecheck     = "redis recheck"
	stepRechecked   = "redis rechecked"
	stepTrim        = "redis trim"
	stepTrimmed     = "redis trimmed"
	stepDiscard     = "redis discard"
	stepDiscarded   = "redis discarded"
)
