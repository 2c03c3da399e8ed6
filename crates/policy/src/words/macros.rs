//! The macros that declare words.

/// Declares words of which one is chosen: an enum whose variants are rows, numbered by their place.
///
/// A payload's list names the values that conformance traces draw from, the default first.
macro_rules! choice {
    (
        $(#[doc = $about:literal])+
        pub enum $Name:ident as $group:literal {
            $(
                $(#[doc = $doc:literal])+
                $Word:ident as $word:literal
                $({ $($(#[doc = $slot_doc:literal])+ $slot:ident : $Slot:ty = $samples:expr),+ $(,)? })?
                => { $($facts:tt)* }
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name {
            $(
                $(#[doc = $doc])+
                $Word $({ $($(#[doc = $slot_doc])+ $slot: $Slot),+ })?
            ),+
        }

        const _: () = {
            #[allow(unused_imports)]
            use $crate::words::{
                Choice, Does::*, Facts, Field, Group, Payload, Slot, Source, Used, Value, Word,
            };
            #[allow(unused_imports)]
            use $crate::ChangeKind as Changes;

            enum Number { $($Word),+ }

            static GROUP: Group = Group {
                name: $group,
                doc: concat!($($about, "\n"),+),
                words: &[$(Word {
                    name: $word,
                    doc: concat!($($doc, "\n"),+),
                    payload: &[$($(Payload {
                        name: stringify!($slot),
                        doc: concat!($($slot_doc, "\n"),+),
                        samples: &$samples,
                    }),+)?],
                    facts: { #[allow(clippy::needless_update)] Facts { $($facts)* ..Facts::PLAIN } },
                }),+],
            };

            impl Choice for $Name {
                fn group() -> &'static Group {
                    &GROUP
                }

                fn number(&self) -> u32 {
                    match self { $(Self::$Word { .. } => Number::$Word as u32),+ }
                }

                #[allow(unused_variables)]
                fn from_number(number: u32, source: &mut Source) -> Self {
                    let words = GROUP.words;
                    $(
                        if number == Number::$Word as u32 {
                            #[allow(unused_mut, unused_assignments)]
                            let mut slot = 0;
                            return Self::$Word $({ $($slot: {
                                let row = &words[number as usize].payload[slot];
                                #[allow(unused_assignments)]
                                { slot += 1; }
                                <$Slot as Field>::draw(row.samples, source)
                            }),+ })?;
                        }
                    )+
                    unreachable!("{} has no word {number}", GROUP.name)
                }
            }

            impl Used for $Name {
                #[allow(unused_variables)]
                fn visit(&self, _row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
                    visit(self.word());
                    match self {
                        $(Self::$Word $({ $($slot),+ })? => { $($($slot.visit(self.word(), visit);)+)? })+
                    }
                }
            }

            impl Field for $Name {
                const LEN: usize = 1 $($( + $(<$Slot as Field>::LEN +)+ 0)?)+;

                fn slots(name: &'static str, out: &mut Vec<Slot>) {
                    out.push(Slot::Scalar(name));
                    $($($(<$Slot as Field>::slots(stringify!($slot), out);)+)?)+
                }

                #[allow(unused_assignments, unused_mut, unused_variables)]
                fn write(&self, out: &mut Vec<u64>) {
                    let begin = out.len();
                    out.push(self.number().into());
                    out.resize(begin + Self::LEN, 0);
                    let mut at = begin + 1;
                    $($($(
                        if let Self::$Word { $slot, .. } = self {
                            let mut words = Vec::new();
                            $slot.write(&mut words);
                            out[at..at + words.len()].copy_from_slice(&words);
                        }
                        at += <$Slot as Field>::LEN;
                    )+)?)+
                }

                fn draw(_samples: &'static [u64], source: &mut Source) -> Self {
                    let number = source.word(&GROUP);
                    Self::from_number(number, source)
                }

                fn python_type() -> String {
                    Self::python_choice()
                }

                #[allow(unused_variables)]
                fn map_times(&mut self, by: &dyn Fn(ampsched_model::Ns) -> ampsched_model::Ns) {
                    match self {
                        $(Self::$Word $({ $($slot),+ })? => { $($($slot.map_times(by);)+)? })+
                    }
                }

                fn set(&mut self, value: &Value) -> Result<(), String> {
                    *self = value.choice()?;
                    Ok(())
                }
            }
        };
    };
}

/// Declares words that stand side by side: a struct whose fields are rows, each with its default.
///
/// With `wire`, the struct can be lowered, drawn and set from Python; a field that is a number then names the values
/// that conformance traces draw from.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        pub struct $Name:ident as $group:literal $($wire:ident)? {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $Field:ty = $default:expr $(, in $samples:expr)? => { $($facts:tt)* }
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq $($(, $derive)+)?)]
        pub struct $Name {
            $($(#[doc = $doc])+ pub $field: $Field),+
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }

        const _: () = {
            #[allow(unused_imports)]
            use $crate::ChangeKind as Changes;
            #[allow(unused_imports)]
            use $crate::words::{Does::*, Facts, Group, Means, Record, Used, Word};

            static GROUP: Group = Group {
                name: $group,
                doc: concat!($($about, "\n"),+),
                words: &[$(Word {
                    name: stringify!($field),
                    doc: concat!($($doc, "\n"),+),
                    payload: &[],
                    facts: { #[allow(clippy::needless_update)] Facts { $($facts)* ..Facts::PLAIN } },
                }),+],
            };

            impl Record for $Name {
                fn group() -> &'static Group {
                    &GROUP
                }

                fn visit_fields(&self, visit: &mut dyn FnMut(&'static Word)) {
                    let mut rows = GROUP.words.iter();
                    $(self.$field.visit(rows.next().expect("a row for each field"), visit);)+
                }
            }

            impl Used for $Name {
                fn visit(&self, _row: &'static Word, visit: &mut dyn FnMut(&'static Word)) {
                    self.visit_fields(visit);
                }
            }
        };

        record_on_the_wire! {
            [$($wire)?] $Name { $($field : $Field = $default $(, in $samples)? ;)+ }
        }
    };
}

/// What [`record!`] adds with `wire`.
macro_rules! record_on_the_wire {
    ([] $($rest:tt)*) => {};
    ([wire] $Name:ident { $($field:ident : $Field:ty = $default:expr $(, in $samples:expr)? ;)+ }) => {
        const _: () = {
            use $crate::words::{Field, Record, Slot, Source, Value, Wire};

            impl Wire for $Name {
                const LEN: usize = 0 $( + <$Field as Field>::LEN)+;

                fn fields(out: &mut Vec<Slot>) {
                    $(<$Field as Field>::slots(stringify!($field), out);)+
                }

                fn write_fields(&self, out: &mut Vec<u64>) {
                    $(self.$field.write(out);)+
                }

                fn draw_fields(source: &mut Source) -> Self {
                    let mut rows = Self::group().words.iter();
                    Self { $($field: {
                        let row = rows.next().expect("a row for each field");
                        #[allow(unused_mut, unused_assignments)]
                        let mut samples: &'static [u64] = &[];
                        $(samples = &$samples;)?
                        let drawn = <$Field as Field>::draw(samples, source);
                        if source.may(row) { drawn } else { $default }
                    }),+ }
                }

                fn map_all_times(&mut self, by: &dyn Fn(ampsched_model::Ns) -> ampsched_model::Ns) {
                    $(self.$field.map_times(by);)+
                }

                fn python_types() -> Vec<String> {
                    vec![$(<$Field as Field>::python_type()),+]
                }

                fn set_field(&mut self, name: &str, value: &Value) -> Option<Result<(), String>> {
                    $(if name == stringify!($field) {
                        return Some(<$Field as Field>::set(&mut self.$field, value));
                    })+
                    None
                }
            }
        };
    };
}

/// Declares the changes of a plan: an enum with one payload each, and its kinds.
macro_rules! changes {
    (
        $(#[doc = $about:literal])+
        pub enum $Name:ident, $Kind:ident as $group:literal {
            $(
                $(#[doc = $doc:literal])+
                $Word:ident($Payload:ty) as $word:literal, $payload:literal => { $($facts:tt)* }
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Name { $($(#[doc = $doc])+ $Word($Payload)),+ }

        /// Kinds of changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Kind { $($(#[doc = $doc])+ $Word),+ }

        impl $Kind {
            /// All of them; each stands at its number.
            pub const ALL: &[Self] = &[$(Self::$Word),+];

            /// Its row.
            pub fn word(self) -> &'static $crate::words::Word {
                &$Name::group().words[self as usize]
            }
        }

        impl $Name {
            /// Its kind.
            pub fn kind(&self) -> $Kind {
                match self { $(Self::$Word(_) => $Kind::$Word),+ }
            }

            /// The rows of all changes.
            pub fn group() -> &'static $crate::words::Group {
                #[allow(unused_imports)]
                use $crate::words::{Does::*, Facts, Group, Means, Payload, Word};
                static GROUP: Group = Group {
                    name: $group,
                    doc: concat!($($about, "\n"),+),
                    words: &[$(Word {
                        name: $word,
                        doc: concat!($($doc, "\n"),+),
                        payload: &[Payload { name: $payload, doc: "", samples: &[] }],
                        facts: { #[allow(clippy::needless_update)] Facts { $($facts)* ..Facts::PLAIN } },
                    }),+],
                };
                &GROUP
            }

            /// What it sets, as words on the wire: (element, value) for each element.
            pub fn payload(&self) -> Vec<(u32, u64)> {
                match self { $(Self::$Word(payload) => $crate::words::Payloads::words(payload)),+ }
            }
        }
    };
}

/// Declares what may be known of a thread: a struct whose fields arrive only if the policy's needs name them.
macro_rules! factors {
    (
        $(#[doc = $about:literal])+
        pub struct $Name:ident as $group:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $Field:ty, needs $need:ident
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $Name { $($(#[doc = $doc])+ pub $field: $Field),+ }

        impl $Name {
            /// Those that a policy's needs name; the others are missing.
            #[inline]
            pub fn named_by(self, needs: &$crate::Needs) -> Self {
                Self { $($field: if needs.$need { self.$field } else { <$Field>::default() }),+ }
            }

            /// The rows of all factors; the payload is the need that grants it.
            pub fn group() -> &'static $crate::words::Group {
                use $crate::words::{Facts, Group, Payload, Word};
                static GROUP: Group = Group {
                    name: $group,
                    doc: concat!($($about, "\n"),+),
                    words: &[$(Word {
                        name: stringify!($field),
                        doc: concat!($($doc, "\n"),+),
                        payload: &[Payload { name: stringify!($need), doc: "", samples: &[] }],
                        facts: Facts::PLAIN,
                    }),+],
                };
                &GROUP
            }
        }
    };
}
