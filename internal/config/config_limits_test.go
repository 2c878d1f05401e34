package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLimitsHaveDefaultsWithinTheirBounds(t *testing.T) {
	t.Parallel()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Limits]()) {
		var values []int64
		for _, text := range strings.Fields(f.Tag.Get("is")) {
			n, ok := parseSize(text)
			if f.Type == reflect.TypeFor[time.Duration]() {
				d, err := time.ParseDuration(text)
				n, ok = int64(d), err == nil
			}
			if !ok {
				t.Errorf("%s: %q cannot be read", f.Name, text)
			}
			values = append(values, n)
		}
		if len(values) != 3 || f.Tag.Get("yaml") == "" {
			t.Fatalf("%s has the tag %q: expected a name, the default, the least and the most", f.Name, f.Tag)
		}
		if values[0] < values[1] || values[2] > 0 && values[0] > values[2] {
			t.Errorf("%s: the default is out of its bounds: %v", f.Name, values)
		}
	}
}
