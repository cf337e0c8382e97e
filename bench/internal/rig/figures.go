package rig

import (
	"fmt"
	"slices"
)

// Median returns the median of the elements' values.
func Median[T any](of []T, value func(T) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	var values []float64
	for _, x := range of {
		values = append(values, value(x))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Ratio returns the median of the ratios of two programs. It compares them round by round, so that a disturbance that slows a whole round
// does not count.
func Ratio[T any](a, b []T, value func(T) float64) float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = value(a[i]) / value(b[i])
	}
	return Median(ratios, func(x float64) float64 { return x })
}

// Thousands formats 123456 as 123,000, because more digits would be noise.
func Thousands(f float64) string {
	if f < 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.0f,000", f/1000)
}
