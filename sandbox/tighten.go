package sandbox

// AtMost returns the profile with no wider mode than the named one; "" changes nothing. An unknown
// name counts as the strictest.
func (p Profile) AtMost(name string) Profile {
	if name == "" {
		return p
	}
	mode, err := ParseMode(name)
	if err != nil {
		mode = ReadOnly
	}
	p.Mode = min(p.Mode, mode)
	return p
}
