//! Speed-ups that a trained model predicts from counters, by the same code as in simulation.

use std::collections::BTreeSet;

use ampsched_computer::{CoreMap, Root, core_kinds};
use ampsched_model::{ClassId, InputError};
use ampsched_predict::{COUNTERS, Model, Models, Origin, Predictor, counter_index};

/// The models of the classes of cores.
#[derive(Clone, Debug)]
pub struct Speedups {
    name: String,
    /// By class; none if the model does not know its cores.
    models: Vec<Option<Model>>,
    /// The same, bound to counters.
    predictors: Vec<Option<Predictor>>,
}

impl Speedups {
    /// The models of this machine's cores. Errors: there are none.
    pub fn new(models: &Models, root: &Root, cores: &CoreMap) -> Result<Self, InputError> {
        let kinds = core_kinds(root, &cores.cpus())?;
        let of_class = |class: ClassId| {
            let domain = cores.domains().iter().find(|domain| domain.class == class.0)?;
            let mhz = domain.freqs_mhz.last().map_or(f64::NAN, |&mhz| f64::from(mhz));
            let kind = kinds.iter().find(|kind| kind.cpus.contains(&domain.cpus[0]))?;
            let named = models.for_core(&kind.name, mhz);
            named.or_else(|| models.for_core(&kind.core_type, mhz)).cloned()
        };
        let classes = (0..cores.class_count()).map(ClassId::from);
        let found: Vec<Option<Model>> = classes.map(of_class).collect();
        if found.iter().any(Option::is_some) {
            let (name, predictors) = (models.name.clone(), Vec::new());
            return Ok(Self { name, models: found, predictors });
        }
        let here: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let known: Vec<String> = models.models.iter().map(describe).collect();
        let message =
            format!("it knows {}, but the cores here are {}", known.join(", "), here.join(", "));
        Err(InputError::new("--model", models.name.as_str(), message).with_hint(
            "a model says nothing of other processors; `ampsched calibrate` makes one of this computer",
        ))
    }

    /// The counters that are read.
    pub fn counters(&self) -> Vec<&'static str> {
        let features = self.models.iter().flatten().flat_map(|model| &model.features);
        let names = features.flat_map(|feature| [&feature.count, &feature.per]);
        // A model names nothing that is not in the vocabulary.
        names.filter_map(|name| counter_index(name)).map(|place| COUNTERS[place].name).collect()
    }

    /// Binds the models to counters in the order of `names`; returns what is read and not among them, and
    /// without which nothing can be predicted.
    pub fn bind(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        let predictors = self.models.iter();
        self.predictors = predictors
            .map(|model| model.as_ref().map(|model| Predictor::new(model, names)))
            .collect();
        let missing = |counter: &&'static str| !names.contains(counter);
        let lacks: BTreeSet<&'static str> = self.counters().into_iter().filter(missing).collect();
        lacks.into_iter().collect()
    }

    /// What is predicted by which model, in a sentence.
    pub fn describe(&self, cores: &CoreMap) -> String {
        let known = (0..self.models.len()).filter(|&class| self.models[class].is_some());
        let classes: Vec<String> =
            known.map(|class| cores.class_name(ClassId::from(class))).collect();
        let classes = classes.join(" and ");
        format!("the model {} predicts speed-ups from counters of the cores {classes}", self.name)
    }

    /// The speed-up of a thread from what has been counted of it on a class of cores; none if the model does
    /// not know the cores, or a counter is missing.
    pub fn predict(&self, class: ClassId, counts: &[f64]) -> Option<f64> {
        let prediction = self.predictors.get(class.index())?.as_ref()?.predict(counts);
        (prediction.origin == Origin::Model).then_some(prediction.speedup)
    }
}

fn describe(model: &Model) -> String {
    let core_type = model.core_type.as_deref().unwrap_or("any core");
    model.mhz.map_or(core_type.to_owned(), |mhz| format!("{core_type} at {mhz} MHz"))
}
