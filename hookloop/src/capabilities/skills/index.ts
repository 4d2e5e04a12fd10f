export type { FoundSkills } from './find-skills.ts'
export type { Skill, SkillDefinition } from './skill.ts'
export { findSkills, getActiveSkills, skills, type SkillsOptions } from './skills.ts'
