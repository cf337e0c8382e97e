// Package spec describes sources for the configuration: their kinds, the settings of each, and
// the patterns of their keys.
package spec
